package embedpg

import "syscall"

// setDeathSignal makes the kernel signal the process when the thread that starts it dies.
// Go sets it after it has changed the user, which would clear it.
func setDeathSignal(attr *syscall.SysProcAttr, sig syscall.Signal) { attr.Pdeathsig = sig }
