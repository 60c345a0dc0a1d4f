package main

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"charm.land/lipgloss/v2"
)

func TestClean(t *testing.T) {
	for name, tc := range map[string][2]string{
		"plain":            {"hello", "hello"},
		"lines":            {"a\nb\r\nc\rd\u0085e\u2028f\u2029g", "a\nb\nc\nd\ne\nf\ng"},
		"empty lines":      {"a\n\nb\r\n\r\nc", "a\n\nb\n\nc"},
		"tab":              {"a\tb", "a    b"},
		"colour":           {"\x1b[31mred\x1b[0m", "␛[31mred␛[0m"},
		"clear the screen": {"\x1b[2J\x1b[H", "␛[2J␛[H"},
		"title":            {"\x1b]0;evil\x07", "␛]0;evil␇"},
		"clipboard":        {"\x1b]52;c;aGk=\x1b\\", "␛]52;c;aGk=␛\\"},
		"C1 CSI":           {"\u009b31m", "\ufffd31m"},
		"C1 as a byte":     {"\x9b31m", "\ufffd31m"},
		"NUL, BS, DEL":     {"a\x00b\bc\x7f", "a␀b␈c␡"},
		"override":         {"exe.\u202egpj\u202c", "exe.gpj"},
		"isolates":         {"\u2066a\u2067b\u2068c\u2069\u200e\u200f\u061c", "abc"},
		"not UTF-8":        {"a\xff\xfeb", "a\ufffd\ufffdb"},
		"hidden":           {"a\u200b\u2060\ufeff\u00adb", "ab"},
		"tags":             {"a\U000e0001\U000e0041b", "ab"},
		"private planes":   {"\U0010eeee", "\ufffd"},
		"family":           {"👨\u200d👩\u200d👧", "👨\u200d👩\u200d👧"},
		"heart":            {"❤\ufe0f", "❤\ufe0f"},
		"Persian":          {"می\u200cخواهم", "می\u200cخواهم"},
		"accent":           {"e\u0301", "e\u0301"},
		"heap of accents":  {"e" + strings.Repeat("\u0301", 1000) + "x\u0301", "e" + strings.Repeat("\u0301", markLimit) + "x\u0301"},
		"wide":             {"日本語", "日本語"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := clean(tc[0]); got != tc[1] {
				t.Errorf("clean(%q) = %q, want %q", tc[0], got, tc[1])
			}
		})
	}
	if got := cleanLine(" a\n\n b\t\x1b c "); got != "a b ␛ c" {
		t.Errorf("cleanLine: %q", got)
	}
}

// harmless holds a text to what a terminal may be given: no control character but the line end, nothing that turns text.
func harmless(t *testing.T, s string) {
	t.Helper()
	if !utf8.ValidString(s) {
		t.Fatalf("not UTF-8: %q", s)
	}
	for _, r := range s {
		if r != '\n' && unicode.IsControl(r) || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
			t.Fatalf("holds %U: %q", r, s)
		}
	}
}

func FuzzClean(f *testing.F) {
	for _, s := range []string{"", "hello", "\x1b[31mred", "\u009b2J", "a\u202eb", "👨\u200d👩\u200d👧", "e\u0301", "\xff", "a\r\nb", "日本語 の テスト", "🇩🇪🏴"} {
		f.Add(s, 20)
	}
	f.Fuzz(func(t *testing.T, s string, width int) {
		got := clean(s)
		harmless(t, got)
		if again := clean(got); again != got {
			t.Fatalf("cleaned twice: %q, then %q", got, again)
		}
		if line := cleanLine(s); strings.Contains(line, "\n") {
			t.Fatalf("a line with lines: %q", line)
		}
		width = 2 + int(uint(width)%100)
		var words strings.Builder
		for _, line := range wrapText(got, width) {
			if w := lipgloss.Width(line); w > width {
				t.Fatalf("a line of %d cells in %d: %q", w, width, line)
			}
			words.WriteString(line)
		}
		if a, b := strip(got), strip(words.String()); a != b {
			t.Fatalf("wrapping changed the text: %q, %q", a, b)
		}
		if w := lipgloss.Width(fit(cleanLine(s), width)); w > width {
			t.Fatalf("fit to %d cells in %d", w, width)
		}
	})
}

func strip(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, s)
}
