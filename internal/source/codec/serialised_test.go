package codec

import (
	"strings"
	"testing"
)

// nested is an object in which so many arrays are nested.
func nested(arrays int) string {
	return `O:1:"A":1:{s:1:"p";` + strings.Repeat("a:1:{i:0;", arrays) + "N;" + strings.Repeat("}", arrays) + "}"
}

// What is said to be an object was read as one by PHP 8.2, and nothing else was, but for
// what follows an object: PHP 8.3 is the first that warns of it.
func TestSerialised_ReadsObjectsAsPHPDoes(t *testing.T) {
	for raw, want := range map[string]string{
		`O:3:"A\B":0:{}`: `A\B`, `O:3:"A\B":1:{s:1:"p";i:-1;}`: `A\B`, `O:3:"A\B":1:{i:0;b:1;}`: `A\B`, "O:3:\"A\xc3\x96\":0:{}": "A\xc3\x96",
		`O:1:"A":1:{s:3:"é}";N;}`: "A", `O:1:"A":1:{s:1:"p";s:6:"";}{";";}`: "A", `O:1:"A":1:{s:1:"p";R:1;}`: "A", `O:1:"A":1:{s:1:"p";E:6:"Suit:A";}`: "A",
		`O:1:"A":4:{i:0;d:1.0E+25;i:1;d:-INF;i:2;d:NAN;i:3;d:.5;}`: "A", `O:1:"A":1:{s:1:"p";a:2:{i:0;O:1:"B":0:{}s:1:"k";a:0:{}}}`: "A",
		`O:1:"A":1:{s:1:"p";C:1:"B":2:{;}}}`: "A", `C:3:"A\B":2:{xx}`: `A\B`, "O:1:\"A\":1:{s:4:\"\x00*\x00p\";N;}": "A", nested(4095): "A",

		"": "", "garbage": "", "O": "", "O:": "", "O:3": "", "N;": "", "a:0:{}": "", `s:1:"A";`: "", `E:6:"Suit:A";`: "", `o:0:{}`: "", nested(4096): "",
		`O:3:"A\B":1:{s:1:"p";i:1;`: "", `O:3:"A\B":2:{s:1:"p";i:1;}`: "", `O:3:"A\B":0:{s:1:"p";i:1;}`: "", `O:3:"A\B":-1:{}`: "", `O:+3:"A\B":0:{}`: "",
		`O:0:"":0:{}`: "", `O:3:"A-B":0:{}`: "", `O:4:"\A\B":0:{}`: "", `O:4:"A\B":0:{}`: "", `O:99999999999:"A":0:{}`: "", `O:1:"A":99999999999:{}`: "",
		`O:1:"A":1:{N;i:1;}`: "", `O:1:"A":1:{a:0:{}i:1;}`: "", `O:1:"A":1:{i:0;b:2;}`: "", `O:1:"A":1:{i:0;i: 1;}`: "", `O:1:"A":1:{i:0;i:;}`: "",
		`O:1:"A":1:{i:0;d:IF;}`: "", `O:1:"A":1:{i:0;n;}`: "", `O:1:"A":1:{i:0;s:3:"a";}`: "", `O:1:"A":1:{i:0;C:1:"B":9:{}}`: "", `O:1:"A":0:{} `: "",
		`O:1:"A":0:{}O:1:"A":0:{}`: "",
	} {
		if class, ok := serialisedObject([]byte(raw)); class != want || ok != (want != "") {
			t.Errorf("%.200q: %q, %t, want %q", raw, class, ok, want)
		}
	}
}
