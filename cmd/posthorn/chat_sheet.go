package main

import (
	"fmt"
	"strings"
	"time"

	"charm.land/lipgloss/v2"
)

// sheet collects rows and remembers what the next one stands under.
type sheet struct {
	m      *chatModel
	width  int
	rows   []string
	sender string    // of the message above, "" after anything else
	at     time.Time // and when
	date   string
}

// turn tells whether the sender is to be named: the one above is another, or it is a while ago.
func (s *sheet) turn(sender string, at time.Time) bool {
	if sender == s.sender && at.Sub(s.at) < sameBreath {
		s.at = at
		return false
	}
	if len(s.rows) > 0 && s.rows[len(s.rows)-1] != "" {
		s.rows = append(s.rows, "")
	}
	s.sender, s.at = sender, at
	return true
}

func (s *sheet) system(text string) {
	if s.sender != "" {
		s.rows = append(s.rows, "")
	}
	s.sender = ""
	for _, line := range wrapText(text, s.width-2) {
		s.rows = append(s.rows, atCentre(s.m.theme.dim.Render(line), s.width))
	}
}

// day separates the days.
func (s *sheet) day(at time.Time) {
	if date := at.Format(time.DateOnly); date != s.date {
		s.date = date
		s.rule(s.m.theme.dim, at.Format("Monday, 2 January 2006"))
	}
}

// rule is a line across with a word in it.
func (s *sheet) rule(style lipgloss.Style, word string) {
	side := max((s.width-lipgloss.Width(word)-4)/2, 0)
	if len(s.rows) > 0 {
		s.rows = append(s.rows, "")
	}
	s.rows = append(s.rows, style.Render(fit(" "+strings.Repeat("─", side)+" "+word+" "+strings.Repeat("─", side), s.width)), "")
	s.sender = ""
}

// body breaks a text for the width that messages have, which leaves a margin at the other side.
func (s *sheet) body(text string) []string {
	lines := wrapText(text, max(s.width-gutter-max(s.width/6, 3), 2))
	if more := len(lines) - messageRows; more > 0 {
		lines = append(lines[:messageRows:messageRows], fmt.Sprintf("… and %d more lines", more))
	}
	return lines
}
