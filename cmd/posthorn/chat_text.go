package main

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"charm.land/lipgloss/v2"
)

// Whatever people send is shown in somebody's terminal: bodies, names and titles go through clean or cleanLine before
// anything else is done with them, and styles are put on afterwards.

// markLimit is how many marks without a width may stand on one letter; more are no writing, they only cover neighbours.
const markLimit = 8

// clean makes a text harmless and keeps its lines. Control characters become their pictures, so that what was tried stays
// readable (␛[2J); what cannot be seen but turns or hides text, as bidi overrides and tags, goes.
func clean(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	marks := 0
	after := rune(0)
	for _, r := range s { // a byte that is no UTF-8 comes as U+FFFD
		was := after
		after = r
		switch {
		case r == '\n' && was == '\r':
			continue // one line end, written already
		case r == '\n' || r == '\r' || r == '\u0085' || r == '\u2028' || r == '\u2029':
			r = '\n'
		case r == '\t':
			b.WriteString("   ")
			r = ' '
		case r < 0x20:
			r += '\u2400'
		case r == 0x7f:
			r = '\u2421'
		case r < 0xa0 && r >= 0x80, r >= 0xf0000: // C1; planes that are private and used to draw with
			r = unicode.ReplacementChar
		case zeroWidth(r):
			if marks++; marks > markLimit {
				continue
			}
			b.WriteRune(r)
			continue
		case unicode.Is(unicode.Cf, r) && !unicode.Is(unicode.Prepended_Concatenation_Mark, r):
			continue
		}
		marks = 0
		b.WriteRune(r)
	}
	return b.String()
}

// zeroWidth is what stands on or between letters: accents, and the joiners that emoji and several scripts need.
func zeroWidth(r rune) bool {
	return r == '\u200c' || r == '\u200d' || r > 0x7f && unicode.In(r, unicode.Mn, unicode.Me)
}

// cleanLine is clean for what has one line: names, titles, previews.
func cleanLine(s string) string {
	return strings.Join(strings.Fields(clean(s)), " ")
}

// wrapText breaks a clean text into lines of at most width cells (2 or more); words that are longer are cut between
// letters. There is at least one line. It is done here and not by lipgloss.Wrap, whose lines may be a cell too wide.
func wrapText(s string, width int) []string {
	var lines []string
	for paragraph := range strings.SplitSeq(s, "\n") {
		line := ""
		for i, word := range strings.Split(paragraph, " ") {
			joined := word
			if i > 0 {
				joined = line + " " + word
			}
			switch {
			case lipgloss.Width(joined) <= width:
				line = joined
				continue
			case word == "": // one space too many
				continue
			case i > 0 && line != "":
				lines = append(lines, line)
			}
			for line = word; lipgloss.Width(line) > width; {
				n := cut(line, width)
				lines = append(lines, line[:n])
				line = line[n:]
			}
		}
		lines = append(lines, line)
	}
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return lines
}

// cut tells how many bytes at the beginning of a long word fill width cells. It looks at a bounded stretch, so that a
// word of 64 KiB is not measured again for each of its lines.
func cut(word string, width int) int {
	stretch := word[:min(len(word), 64*width)]
	for len(stretch) < len(word) && !utf8.RuneStart(word[len(stretch)]) {
		stretch = stretch[:len(stretch)-1]
	}
	n := len(lipgloss.NewStyle().Inline(true).MaxWidth(width).Render(stretch))
	if n == 0 {
		_, n = utf8.DecodeRuneInString(word)
	}
	return n
}

// fit cuts a clean line to width cells and says so by an ellipsis.
func fit(s string, width int) string {
	switch {
	case width <= 0:
		return ""
	case lipgloss.Width(s) <= width:
		return s
	case width == 1:
		return "…"
	}
	return lipgloss.NewStyle().Inline(true).MaxWidth(width-1).Render(s) + "…"
}

// The next three place a line, which may be styled, in a width that it is not wider than.

func atLeft(s string, width int) string {
	return s + strings.Repeat(" ", max(width-lipgloss.Width(s), 0))
}

func atRight(s string, width int) string {
	return strings.Repeat(" ", max(width-lipgloss.Width(s), 0)) + s
}

func atCentre(s string, width int) string {
	return strings.Repeat(" ", max((width-lipgloss.Width(s))/2, 0)) + s
}

// apart places one line at the left and one at the right; where both do not fit the right one goes.
func apart(left, right string, width int) string {
	gap := width - lipgloss.Width(left) - lipgloss.Width(right)
	if gap < 1 {
		return atLeft(left, width)
	}
	return left + strings.Repeat(" ", gap) + right
}
