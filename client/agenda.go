package client

import (
	"container/heap"
	"time"
)

// agenda is what a session has to do later, earliest first. One timer serves all of it.
type agenda []*task

type task struct {
	at    time.Time
	run   func()
	index int // -1: no longer on the agenda
}

func (a *agenda) add(d time.Duration, run func()) *task {
	t := &task{at: time.Now().Add(d), run: run}
	heap.Push(a, t)
	return t
}

// drop takes a task off; legal for nil and for one that has run.
func (a *agenda) drop(t *task) {
	if t != nil && t.index >= 0 {
		heap.Remove(a, t.index)
	}
}

// due runs what is due.
func (a *agenda) due() {
	for now := time.Now(); len(*a) > 0 && !(*a)[0].at.After(now); {
		heap.Pop(a).(*task).run()
	}
}

// next is how long until something is due.
func (a *agenda) next() time.Duration {
	if len(*a) == 0 {
		return time.Hour
	}
	return max(0, time.Until((*a)[0].at))
}

// The heap's own methods.

func (a agenda) Len() int           { return len(a) }
func (a agenda) Less(i, j int) bool { return a[i].at.Before(a[j].at) }

func (a agenda) Swap(i, j int) {
	a[i], a[j] = a[j], a[i]
	a[i].index, a[j].index = i, j
}

func (a *agenda) Push(x any) {
	t := x.(*task)
	t.index = len(*a)
	*a = append(*a, t)
}

func (a *agenda) Pop() any {
	old := *a
	t := old[len(old)-1]
	old[len(old)-1], t.index = nil, -1
	*a = old[:len(old)-1]
	return t
}
