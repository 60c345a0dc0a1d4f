package lab

import "syscall"

// dieWithLab has the kernel kill the process when the thread that started it ends, which is when the lab does.
func dieWithLab(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
