package format

import "testing"

func TestVisible_ShowsWhatHides(t *testing.T) {
	for _, test := range []struct{ in, want string }{
		{"plain text, äöü, 漢字, 🙂", "plain text, äöü, 漢字, 🙂"},
		{"a\x00b", "a␀b"},
		{"line\nnext\ttab\r", "line ⏎ next␉tab␍"},
		{"\x7f", "␡"},
		{"\u0085", `\u0085`},
		{"gpj.\u202eexe", `gpj.\u202eexe`},
		{"\u2066x\u2069", `\u2066x\u2069`},
		{"zero\u200bwidth\ufeff", `zero\u200bwidth\ufeff`},
		{"\U000e0041", `\U000e0041`},
		{"\u3164", `\u3164`},
		{"cut \xe2\x82", "cut \ufffd"},
	} {
		if got := Visible(test.in); got != test.want {
			t.Errorf("visible(%q) = %q, want %q", test.in, got, test.want)
		}
	}
}

func TestVisibleLines_KeepsLinesAndTabs(t *testing.T) {
	if got, want := VisibleLines("a\r\n\tb\x1b[0m\rc"), "a\n\tb␛[0m␍c"; got != want {
		t.Errorf("visibleLines = %q, want %q", got, want)
	}
}
func TestFullStop_EndsASentenceOnce(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "done": "Done.", "Done.": "Done.", "ärger": "Ärger.", "\"x\" is no name": "\"x\" is no name.",
	} {
		if got := Sentence(text); got != want {
			t.Errorf("fullStop(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestHeadAndTail_KeepsTheEndOfALongName(t *testing.T) {
	for _, test := range []struct{ name, head, tail string }{
		{"orders", "orders", ""},
		{"eighteen.letters.1", "eighteen.letters.1", ""},
		{"a-really-long-name-of-a-queue-0001", "a-really-long-name-of-a-q", "ueue-0001"},
		{"مدفوعات.العملاء.الجديدة.اليوم", "مدفوعات.العملاء.الجد", "يدة.اليوم"},
		{"注文処理待ち行列の長い名前", "注文処理待ち行列の", "長い名前"},
		{"letters-with-marks-e\u0301e\u0301e\u0301e\u0301", "letters-with-marks", "-e\u0301e\u0301e\u0301e\u0301"},
		{"hidden-\u202e-and-so-on-and-on", `hidden-\u202e-and-so-`, "on-and-on"},
	} {
		if head, tail := HeadAndTail(test.name); head != test.head || tail != test.tail {
			t.Errorf("%q is divided into %q and %q, want %q and %q", test.name, head, tail, test.head, test.tail)
		}
	}
}
