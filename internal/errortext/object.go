package errortext

import (
	"strings"
)

// object is a JSON object. What is absent or of another type than expected reads
// as the zero value: half of an answer is better than none.
type object map[string]any

// joinSentences is some sentences as one.
func joinSentences(sentences []string) string {
	for i := range max(0, len(sentences)-1) {
		sentences[i] = strings.TrimSuffix(sentences[i], ".")
	}
	return strings.Join(sentences, "; ")
}

// textsOf is a text, or the texts of a list.
func textsOf(value any) []string {
	switch v := value.(type) {
	case string:
		if strings.TrimSpace(v) != "" {
			return []string{v}
		}
	case []any:
		var all []string
		for _, one := range v {
			if s, ok := one.(string); ok {
				all = append(all, s)
			}
		}

		return all
	}

	return nil
}

func (o object) text(name string) string {
	s, _ := o[name].(string)
	return s
}

// first is the first text that is there.
func (o object) first(names ...string) string {
	for _, name := range names {
		if s := o.text(name); strings.TrimSpace(s) != "" {
			return s
		}
	}

	return ""
}
