package redact

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// large is a payload of one mebibyte, of the things that payloads are made of.
func large() []byte {
	var b strings.Builder
	b.WriteString(`{"items":[`)
	for i := 0; b.Len() < 1<<20; i++ {
		fmt.Fprintf(&b, `{"order_id":%d,"customer":{"email":"c%d@example.org","fullName":"Ann B. %d"},"token_count":3,"access_token":"t-%d","note":"sent to bob: ok, at 12:30","lines":[1,2.5,true]},`, i, i, i, i)
	}
	return []byte(strings.TrimSuffix(b.String(), ",") + "]}")
}

// A list has fifty rows, and each of them a small payload.
func BenchmarkPayload_Small(b *testing.B) {
	r := made(b, Options{})
	for name, document := range map[string]string{
		"nothing hidden": `{"order_id":88412,"customer":{"email":"ines@brightmail.example","fullName":"Ines B."},"amount":4990,"currency":"EUR","lines":[{"sku":"TR-204","qty":2}],"note":"sent to bob: ok, at 12:30"}`,
		"hidden":         `{"order_id":88412,"amount":4990,"currency":"EUR","card_number":"4242424242424242","provider":"paylane"}`,
	} {
		b.Run(name, func(b *testing.B) {
			data := []byte(document)
			b.ReportAllocs()
			for b.Loop() {
				r.Payload(data)
			}
		})
	}
}

// trace is an error text of 32 kB.
func trace() string {
	var b strings.Builder
	b.WriteString("connect amqp://guest:guest@mq:5672/: password=hunter2 refused\n")
	for i := 0; b.Len() < 32<<10; i++ {
		fmt.Fprintf(&b, "  at Worker.run (/srv/app/lib/worker-%d.js:%d:17) [as handler], order: %d\n", i, i, i)
	}
	return b.String()
}

func BenchmarkPayload(b *testing.B) {
	r, data := made(b, Options{Paths: []string{"$.items[*].customer.email"}}), large()
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		r.Payload(data)
	}
}

func BenchmarkText(b *testing.B) {
	r, s := Default(), trace()
	b.SetBytes(int64(len(s)))
	for b.Loop() {
		r.Text(s)
	}
}

// deep is a document of a size, 500 brackets deep, of many small things.
func deep(size int, thing string) []byte {
	const levels = 500
	things := strings.Repeat(thing+",", max(1, (size-levels*len(`{"a":}`))/(len(thing)+1)))
	return []byte(strings.Repeat(`{"a":`, levels) + "{" + strings.TrimSuffix(things, ",") + "}" + strings.Repeat("}", levels))
}

func BenchmarkPayload_Deep(b *testing.B) {
	for _, size := range []int{64 << 10, 1 << 20} {
		b.Run(fmt.Sprint(size>>10, "KiB"), func(b *testing.B) {
			r, data := Default(), deep(size, `"pin":1`)
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				r.Payload(data)
			}
		})
	}
}

func BenchmarkMerge_Deep(b *testing.B) {
	r, data := Default(), deep(1<<20, `"pin":1`)
	edited := append(r.Payload(data), '\n')
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Merge(edited, data); err != nil {
			b.Fatal(err)
		}
	}
}

// A document of twice the size takes about twice as much, however deep its
// secrets are and whatever it is made of.
func TestPayload_TakesAsMuchAsTheDocumentIsLong(t *testing.T) {
	r := made(t, Options{Paths: []string{"$.x", "$.a.a.pin"}})
	taken := func(f func()) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f()
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	long := strings.Repeat("n", 8<<10)
	for name, of := range map[string]func(size int) []byte{
		"numbers":      func(size int) []byte { return deep(size, `"pin":1`) },
		"texts":        func(size int) []byte { return deep(size, `"n":"pin=1"`) },
		"JSON in text": func(size int) []byte { return deep(size, `"n":"[1"`) },
		"deep JSON":    func(size int) []byte { return deep(size, `"n":"{\"pin\":1}"`) },
		"pairs":        func(size int) []byte { return deep(size, `"n":{"value":"pin=1","name":"pin"}`) },
		"pairs in pairs": func(size int) []byte {
			n := size / 640
			return []byte(strings.Repeat(`{"k":"pin","v":`, 250) + `{"a":[` + strings.Repeat(strings.Repeat(`{"v":`, 20)+"1"+strings.Repeat(`,"k":"pin"}`, 20)+",", n*2) + `1]}` + strings.Repeat("}", 250))
		},
		"elements": func(size int) []byte { return deep(size, `"n":["pin=1",{"pin":1}]`) },
		"a long name": func(size int) []byte {
			return []byte(`{"` + long + `":{` + strings.Repeat(`"pin":1,`, size/8) + `"n":1}}`)
		},
		"long names": func(size int) []byte {
			return []byte(strings.Repeat(`{"`+long[:size/512]+`":{"pin":1,"a":`, 256) + "1" + strings.Repeat("}}", 256))
		},
	} {
		var took [2]struct{ hide, merge uint64 }
		for i, size := range []int{16 << 10, 32 << 10} {
			data := of(size)
			masked := append(r.Payload(data), '\n')
			took[i].hide = taken(func() { r.Payload(data) })
			took[i].merge = taken(func() {
				if back, err := r.Merge(masked, data); err != nil || !bytes.Equal(back, append(data, '\n')) {
					t.Errorf("%s: it is not merged: %v", name, err)
				}
			})
		}
		if once, twice := took[0], took[1]; twice.hide > 3*once.hide || twice.merge > 3*once.merge || once.merge > 200*16<<10 {
			t.Errorf("%s: 16 KiB take %d bytes, and 32 KiB %d", name, once, twice)
		}
	}
}
