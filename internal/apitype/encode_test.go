package apitype

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"
	"time"
)

type inner struct {
	X string `json:"x,omitzero"`
	Y string `json:"y"`
}

type sample struct {
	A     int      `json:"a"`
	B     int      `json:"b,omitzero"`
	C     int      `json:"c,omitzero"`
	At    Time     `json:"at"`
	Gone  Time     `json:"gone,omitzero"`
	Never Time     `json:"never"`
	D     Duration `json:"d,omitzero"`
	TTR   Duration `json:"ttr"`
	inner
	List []inner  `json:"list"`
	None []inner  `json:"none,omitempty"`
	Null []string `json:"null"`
	One  *inner   `json:"one,omitzero"`
	No   *inner   `json:"no,omitzero"`
	Zero *int     `json:"zero,omitzero"`
	Raw  Payload  `json:"raw"`
}

func TestEncode_LeavesOutWhatIsEmpty(t *testing.T) {
	at := time.Date(2030, 1, 2, 3, 4, 5, 6000, time.FixedZone("", 3600))
	v := sample{
		C: 1, At: At(at), Gone: At(time.Time{}.UTC()), TTR: Duration(time.Minute), inner: inner{Y: "z"},
		List: []inner{}, None: []inner{}, One: &inner{Y: "<"}, Zero: new(int), Raw: Payload(`{ "n": 1.0 }`),
	}
	const want = `{"a":0,"c":1,"at":"2030-01-02T02:04:05.000006Z","never":"","ttr":"PT1M","y":"z","list":[],"null":null,` +
		`"one":{"y":"\u003c"},"zero":0,"raw":{ "n": 1.0 }}`
	if got := string(Encode(v)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestEncode_IsThatOfTheLibraryButForPayloads(t *testing.T) {
	v := sample{
		A: 1, B: 2, At: At(time.Unix(1, 0)), D: Duration(time.Hour), List: []inner{{X: "x"}, {Y: "\u2028"}}, None: []inner{{}},
		Null: []string{"a"}, No: &inner{}, Raw: Payload(`{"n":1}`),
	}
	want, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if got := Encode(v); !bytes.Equal(got, want) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestEncode_PartsAreOneObject(t *testing.T) {
	for want, parts := range map[string][]any{
		"{}":                   nil,
		`{"y":""}`:             {nil, inner{}, nil},
		`{"y":"","text":"so"}`: {inner{}, Done{Text: "so"}},
		`{"text":"so"}`:        {nil, Done{Text: "so"}},
	} {
		if got := string(Encode(parts...)); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestRow_HasTheMembersAsCells(t *testing.T) {
	row := struct {
		N    int64    `json:"n"`
		Run  int      `json:"run,omitzero"`
		At   Time     `json:"at"`
		Took Duration `json:"took"`
		Why  string   `json:"why,omitzero"`
	}{Why: "so", Took: Duration(time.Second)}
	if got := Columns(row); !slices.Equal(got, []string{"n", "run", "at", "took", "why"}) {
		t.Errorf("columns %q", got)
	}
	if got := Cells(row); !slices.Equal(got, []string{"0", "", "", "PT1S", "so"}) {
		t.Errorf("cells %q", got)
	}
}

func TestTimes_AreReadAsTheyAreWritten(t *testing.T) {
	v := struct {
		At    Time
		Never Time
		Took  Duration
		Raw   Payload
	}{At(time.Date(2030, 1, 2, 3, 4, 5, 6000, time.UTC)), Time{}, Duration(90 * time.Second), Payload(`{"n":1}`)}
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	back := v
	back.At, back.Took, back.Raw, back.Never = Time{}, 0, nil, v.At
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	if !back.At.Equal(v.At.Time) || !back.Never.IsZero() || back.Took != v.Took || string(back.Raw) != string(v.Raw) {
		t.Errorf("%s is read as %+v", data, back)
	}
}
