//go:build unix && !linux

package embedpg

const deathSignalWorks = false

func alive(pid int) bool { return exists(pid) }
