package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/posthorn/posthorn"
)

// bodyText is what a message says, made harmless.
func bodyText(ev *posthorn.Event) string {
	switch {
	case ev.Recalled:
		return "(recalled)"
	case ev.Body != nil:
		return clean(*ev.Body)
	}
	return "(data) " + cleanLine(beginning(string(ev.Data)))
}

// previewText is one line of it.
func previewText(ev *posthorn.Event) string {
	if ev.Body != nil && !ev.Recalled {
		return cleanLine(beginning(*ev.Body))
	}
	return bodyText(ev)
}

// beginning bounds what is looked at where one line is shown.
func beginning(s string) string {
	const bytes = 400
	if len(s) <= bytes {
		return s
	}
	n := bytes
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// quoteText is what a message answers, where that is at hand; "" for one that answers nothing.
func quoteText(c *chatConv, ev *posthorn.Event) string {
	if ev.ReplyTo == 0 {
		return ""
	}
	i, found := slices.BinarySearchFunc(c.events, ev.ReplyTo, func(e posthorn.Event, seq int64) int { return int(e.Seq - seq) })
	if !found {
		return fmt.Sprintf("↪ message %d", ev.ReplyTo)
	}
	return "↪ " + cleanLine(c.events[i].Sender) + ": " + previewText(&c.events[i])
}

// systemText tells an event that is no message. A kind that this version does not know is named and otherwise let be.
func systemText(ev *posthorn.Event, me string) string {
	names := func(users []string) string {
		users = slices.Clone(users)
		for i := range users {
			if users[i] == me {
				users[i] = "you"
			}
		}
		return cleanLine(strings.Join(users, ", "))
	}
	who, whom := names([]string{ev.Sender}), names(ev.Users)
	if who == "" {
		who = "the server"
	}
	switch ev.Kind {
	case posthorn.KindOpen:
		others := slices.DeleteFunc(slices.Clone(ev.Users), func(u string) bool { return u == ev.Sender })
		if len(others) == 0 {
			return who + " began this conversation"
		}
		return who + " began this conversation with " + names(others)
	case posthorn.KindJoin:
		return who + " added " + whom
	case posthorn.KindLeave:
		if slices.Contains(ev.Users, ev.Sender) {
			return whom + " left"
		}
		return who + " removed " + whom
	case posthorn.KindMeta:
		var data struct{ Title string }
		if json.Unmarshal(ev.Data, &data) == nil && data.Title != "" {
			return who + " named it " + cleanLine(data.Title)
		}
		return who + " changed the settings"
	}
	return who + ": something that this version cannot show (" + cleanLine(string(ev.Kind)) + ")"
}
