//go:build unix && !linux

package embedpg

import "syscall"

// setDeathSignal does nothing where the kernel has no such signal: helpers end with their
// input, and the next Start ends an orphaned postmaster.
func setDeathSignal(*syscall.SysProcAttr, syscall.Signal) {}
