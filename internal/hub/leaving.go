package hub

import "github.com/posthorn/posthorn"

// leaving names those whom an event takes out that is here and waits for one before it: what is not in the log, such as
// typing, must not reach them any more, nor come from them (V1).
func (cv *conv) leaving() (gone map[string]bool) {
	for i := range cv.held {
		if ev := cv.held[i].ev; ev.Kind == posthorn.KindLeave {
			if gone == nil {
				gone = map[string]bool{}
			}
			for _, u := range ev.Users {
				gone[u] = true
			}
		}
	}
	return gone
}
