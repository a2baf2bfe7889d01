package bounded_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"redrive/internal/source"
	"redrive/internal/source/bounded"
)

// through is what a driver gets of an answer.
func through(line *bounded.Line, answer io.Reader) (string, error) {
	got, err := io.ReadAll(line.Reader(answer))
	return string(got), err
}

func TestRedis_WhatIsWithinTheLimitsPassesUnchanged(t *testing.T) {
	answers := "+OK\r\n-ERR no\r\n:12\r\n$-1\r\n$0\r\n\r\n$5\r\na\r\nbc\r\n*-1\r\n*0\r\n*2\r\n$1\r\na\r\n*1\r\n:1\r\n" +
		"%1\r\n+a\r\n:1\r\n~1\r\n#t\r\n_\r\n,1.5\r\n(123\r\n>2\r\n+a\r\n+b\r\n=7\r\ntxt:abc\r\n!3\r\nERR\r\n"
	for name, read := range map[string]io.Reader{
		"at once":      strings.NewReader(answers),
		"byte by byte": iotest.OneByteReader(strings.NewReader(answers)),
	} {
		got, err := through(bounded.New(bounded.Redis), read)
		if err != nil || got != answers {
			t.Errorf("%s: %v\n%q, want\n%q", name, err, got, answers)
		}
	}
}

func TestRedis_WhatIsTooMuchEndsTheConnection(t *testing.T) {
	for name, answer := range map[string]string{
		"a length that no memory has":     "$9223372036854775000\r\n",
		"20 GB":                           "$20000000000\r\n",
		"a number that is too large":      "$99999999999999999999\r\n",
		"a negative length":               "$-2\r\n",
		"no length":                       "$\r\n",
		"a length that comes later":       "$?\r\n",
		"an error of 1 GB":                "!1000000000\r\n",
		"a text of a format, of 1 GB":     "=1000000000\r\n",
		"an error of 100 MB":              "!100000000\r\n", // only a value may be so large, which can be left out
		"two thousand million elements":   "*2000000000\r\n",
		"a set of as many":                "~2000000000\r\n",
		"a message of as many":            ">2000000000\r\n",
		"pairs that overflow":             "%4611686018427387904\r\n",
		"elements of elements":            "*900000\r\n*900000\r\n",
		"arrays within arrays":            strings.Repeat("*1\r\n", 1000),
		"a line without an end":           "+" + strings.Repeat("a", 100_000),
		"an error without an end":         "-" + strings.Repeat("a", 100_000),
		"a length without an end":         "$" + strings.Repeat("1", 100_000),
		"another protocol":                "HTTP/1.1 400 Bad Request\r\n",
		"an attribute":                    "|1\r\n+a\r\n+b\r\n",
		"an empty line":                   "\n",
		"many answers to one request":     strings.Repeat("+"+strings.Repeat("a", 50_000)+"\r\n", 1400),
		"a length in the second element":  "*2\r\n:1\r\n$9223372036854775000\r\n",
		"an element of a deeper announce": "*1\r\n*1\r\n*2000000000\r\n",
	} {
		got, err := through(bounded.New(bounded.Redis), strings.NewReader(answer))
		if err == nil || !strings.Contains(err.Error(), "read no further from the source, because it") {
			t.Errorf("%s: passed %d bytes, error %v", name, len(got), err)
		}
	}
}

// The message names what was too much, and the limit that it exceeded.
func TestRedis_SaysWhichLimitWasExceeded(t *testing.T) {
	for answer, want := range map[string]string{
		"$512000001\r\n":                 "a value of 512000001 bytes, and the limit is 512000000 bytes",
		"$20000000000\r\n":               "a value of 20000 MB, and the limit is 512 MB",
		"!100000000\r\n":                 "a value of 100 MB, and the limit is 8.0 MB",
		"=8000001\r\n":                   "a value of 8000001 bytes, and the limit is 8000000 bytes",
		"*1000001\r\n":                   "1000001 elements in one answer, and the limit is 1000000",
		"*900000\r\n*900000\r\n":         "1800000 elements in one answer, and the limit is 1000000",
		"%600000\r\n":                    "1200000 elements in one answer, and the limit is 1000000",
		"%2000000\r\n":                   "4000000 elements in one answer, and the limit is 1000000",
		"*9\r\n%999999\r\n":              "2000007 elements in one answer, and the limit is 1000000",
		"*9\r\n*2305843009213693951\r\n": "2305843009213693960 elements in one answer, and the limit is 1000000",
		"%2305843009213693951\r\n":       "4611686018427387902 elements in one answer, and the limit is 1000000",
		"*9\r\n%9223372036854775807\r\n": "a length that is none: \"9223372036854775807\"",
	} {
		_, err := through(bounded.New(bounded.Redis), strings.NewReader(answer))
		if err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", answer, err, want)
		}
	}
}

// TestRedis_AValueThatIsTooLargeIsLeftOutAlone says that the others of an answer still come.
func TestRedis_AValueThatIsTooLargeIsLeftOutAlone(t *testing.T) {
	line := bounded.New(bounded.Redis)
	large := strings.Repeat("x", source.MaxRecord+1)
	got, err := through(line, strings.NewReader(fmt.Sprintf("*3\r\n$1\r\na\r\n$%d\r\n%s\r\n$1\r\nb\r\n", len(large), large)))
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(got, "\r\n")
	if len(parts) != 8 || parts[2] != "a" || parts[6] != "b" {
		t.Fatalf("%q", got)
	}
	left, omitted := line.Omitted(parts[4])
	if !omitted || left.Size != int64(len(large)) || left.Later || len(left.Digest) != 64 {
		t.Errorf("%q: %+v", parts[4], left)
	}
	if _, omitted := line.Omitted(large); omitted {
		t.Error("a value that was not left out passes for one that was")
	}
}

// TestRedis_ManyLargeValuesAreLeftForLater says that what is too much together can be read
// one by one.
func TestRedis_ManyLargeValuesAreLeftForLater(t *testing.T) {
	line := bounded.New(bounded.Redis)
	one := fmt.Sprintf("$%d\r\n%s\r\n", 7_000_000, strings.Repeat("x", 7_000_000))
	got, err := through(line, strings.NewReader("*4\r\n"+strings.Repeat(one, 4)))
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(got, "\r\n")
	for i, later := range []bool{false, false, true, true} {
		left, omitted := line.Omitted(parts[2+2*i])
		if omitted != later || left.Later != later {
			t.Errorf("value %d: %+v", i, left)
		}
	}
}

// amqpFrame is a frame with a payload.
func amqpFrame(kind byte, payload []byte) []byte {
	frame := binary.BigEndian.AppendUint32([]byte{kind, 0, 1}, uint32(len(payload)))
	return append(append(frame, payload...), 0xce)
}

// amqpHeader announces a body.
func amqpHeader(size uint64) []byte {
	return amqpFrame(2, append(binary.BigEndian.AppendUint64([]byte{0, 60, 0, 0}, size), 0, 0))
}

// mysqlPacket is a packet with a payload.
func mysqlPacket(number byte, payload ...byte) []byte {
	n := len(payload)
	return append([]byte{byte(n), byte(n >> 8), byte(n >> 16), number}, payload...)
}

func TestFrames_WhatIsWithinTheLimitsPassesUnchanged(t *testing.T) {
	for name, c := range map[string]struct {
		protocol bounded.Protocol
		answer   []byte
	}{
		"AMQP": {bounded.AMQP, bytes.Join([][]byte{amqpFrame(1, []byte("method")), amqpHeader(10), amqpFrame(3, make([]byte, 10)),
			amqpFrame(8, nil), amqpHeader(0)}, nil)},
		"MySQL": {bounded.MySQL, bytes.Join([][]byte{mysqlPacket(0, []byte("greeting")...), mysqlPacket(1, 3), mysqlPacket(2, make([]byte, 70_000)...),
			mysqlPacket(1, 0xfc, 0, 16), mysqlPacket(1, 0, 0, 0, 2, 0), mysqlPacket(1, 0xfe, 0, 0), mysqlPacket(2)}, nil)},
		"PostgreSQL": {bounded.Postgres, []byte("R\x00\x00\x00\x08\x00\x00\x00\x00Z\x00\x00\x00\x05I1\x00\x00\x00\x04")},
		"bytes":      {bounded.Plain, []byte("anything")},
	} {
		for how, from := range map[string]io.Reader{
			"at once": bytes.NewReader(c.answer), "byte by byte": iotest.OneByteReader(bytes.NewReader(c.answer)),
		} {
			got, err := through(bounded.New(c.protocol), from)
			if err != nil || got != string(c.answer) {
				t.Errorf("%s, %s: %v, %d of %d bytes", name, how, err, len(got), len(c.answer))
			}
		}
	}
}

func TestFrames_WhatIsTooMuchEndsTheConnection(t *testing.T) {
	full := append([]byte{0xff, 0xff, 0xff, 2}, make([]byte, 1<<24-1)...)
	for name, c := range map[string]struct {
		protocol bounded.Protocol
		answer   []byte
	}{
		"a frame of 4 GB":                     {bounded.AMQP, []byte{3, 0, 1, 0xff, 0xff, 0xff, 0xff}},
		"a message of 2^64":                   {bounded.AMQP, amqpHeader(1<<64 - 1)},
		"a message of 1.6 GB":                 {bounded.AMQP, amqpHeader(1_600_000_000)},
		"2^63 columns":                        {bounded.MySQL, mysqlPacket(1, 0xfe, 0, 0, 0, 0, 0, 0, 0, 0x80)},
		"a hundred million":                   {bounded.MySQL, mysqlPacket(1, 0xfe, 0, 0xe1, 0xf5, 5, 0, 0, 0, 0)},
		"sixteen million columns":             {bounded.MySQL, mysqlPacket(1, 0xfd, 0xff, 0xff, 0xff)},
		"65,535 columns":                      {bounded.MySQL, mysqlPacket(1, 0xfc, 0xff, 0xff)},
		"2 GB of PostgreSQL":                  {bounded.Postgres, []byte("D\x7f\xff\xff\xff")},
		"a negative length":                   {bounded.Postgres, []byte("D\xff\xff\xff\xff")},
		"a length that does not count itself": {bounded.Postgres, []byte("D\x00\x00\x00\x03")},
		"a message of full frames":            {bounded.MySQL, bytes.Repeat(full, 4)},
	} {
		_, err := through(bounded.New(c.protocol), bytes.NewReader(c.answer))
		if err == nil || !strings.Contains(err.Error(), "read no further from the source, because it") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// mysqlAnswer is an answer of one column, in the older form with two packets of five bytes
// and in the newer one, with rows that begin like a large number of columns.
func mysqlAnswer(older bool, rows int) []byte {
	number := byte(0)
	var answer []byte
	add := func(payload ...byte) {
		number++
		answer = append(answer, mysqlPacket(number, payload...)...)
	}
	add(1)
	add(append([]byte{3}, "def and more"...)...)
	if older {
		add(0xfe, 0, 0, 2, 0)
	}
	for range rows {
		add(append([]byte{0xfc, 0x88, 0x13}, make([]byte, 5000)...)...)
	}
	if older {
		add(0xfe, 0, 0, 2, 0)
	} else {
		add(0xfe, 0, 0, 2, 0, 0, 0)
	}
	return answer
}

// TestMySQL_ARowIsNoAnnouncementOfColumns has answers so long that the numbers of their
// packets begin again, whose rows begin as an answer of 5,000 columns does.
func TestMySQL_ARowIsNoDefinitionOfColumns(t *testing.T) {
	definition := mysqlPacket(1, 0xfc, 0x88, 0x13)
	for _, older := range []bool{true, false} {
		long := mysqlAnswer(older, 600)
		answers := bytes.Join([][]byte{long, mysqlPacket(1, 0, 0, 0, 2, 0, 0, 0), mysqlAnswer(older, 0), long}, nil)
		if got, err := through(bounded.New(bounded.MySQL), bytes.NewReader(answers)); err != nil || got != string(answers) {
			t.Errorf("older %t: %d bytes of %d passed, error %v", older, len(got), len(answers), err)
		}

		// The announcement of the next answer is seen for what it is.
		for _, rows := range []int{0, 253, 254, 255, 600} {
			_, err := through(bounded.New(bounded.MySQL), bytes.NewReader(append(mysqlAnswer(older, rows), definition...)))
			if err == nil || !strings.Contains(err.Error(), "announced 5000 columns") {
				t.Errorf("older %t, after %d rows: %v", older, rows, err)
			}
		}
	}
}

// TestMySQL_NoCommandIsSentWithinAnAnswer is about drivers that give up an answer: they would
// take the rest of it for the answer to the next command.
func TestMySQL_NoCommandIsSentWithinAnAnswer(t *testing.T) {
	answer := mysqlAnswer(false, 2)
	for what, c := range map[string]struct {
		answer []byte
		sends  bool
	}{"the whole": {answer, true}, "its beginning": {answer[:len(answer)-100], false}} {
		server, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer server.Close()
		line := bounded.New(bounded.MySQL)
		client, err := line.Dial(t.Context(), &net.Dialer{}, "tcp", server.Addr().String(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		accepted, err := server.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer accepted.Close()

		if _, err := accepted.Write(c.answer); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(client, make([]byte, 5000)); err != nil {
			t.Fatal(err)
		}
		if c.sends {
			if _, err := io.ReadFull(client, make([]byte, len(answer)-5000)); err != nil {
				t.Fatal(err)
			}
		}
		_, err = client.Write(mysqlPacket(0, []byte("\x03SELECT 1")...))
		if sent := err == nil; sent != c.sends {
			t.Errorf("after %s: %v", what, err)
		}
	}
}

func TestLine_CountsTheBytesOfARequest(t *testing.T) {
	line := bounded.New(bounded.Plain)
	end := line.Begin(t.Context(), 10)
	r := line.Reader(strings.NewReader(strings.Repeat("x", 20)))
	_, err := io.ReadAll(r)
	made := errors.New("what a driver makes of it")
	end(&made)
	if err == nil || made.Error() != err.Error() || !strings.Contains(err.Error(), "more than 10 bytes") {
		t.Errorf("read: %v; the request: %v", err, made)
	}

	// The next one begins with nothing.
	end = line.Begin(t.Context(), 10)
	if _, err := io.ReadAll(line.Reader(strings.NewReader("0123456789"))); err != nil {
		t.Error(err)
	}
	end(&made)
}

// TestLine_TheEndOfARequestClosesConnections is for drivers that wait for an answer although
// the context of their caller has ended.
func TestLine_TheEndOfARequestClosesConnections(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	line := bounded.New(bounded.Redis)
	c, err := line.Dial(t.Context(), &net.Dialer{}, "tcp", silent.Addr().String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := line.Begin(ctx, bounded.MaxRequest)
	read := make(chan error, 1)
	go func() {
		_, err := c.Read(make([]byte, 1))
		read <- err
	}()
	cancel()
	select {
	case err := <-read:
		if !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("it still waits")
	}
	done(&err)
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// FuzzFilters lets nothing pass that is not there, and depends on no cut of the bytes.
func FuzzFilters(f *testing.F) {
	f.Add([]byte("*2\r\n$3\r\nabc\r\n:1\r\n"), uint8(0))
	f.Add(amqpHeader(1<<40), uint8(1))
	f.Add(mysqlPacket(1, 0xfe, 0, 0, 0, 0, 0, 0, 0, 0x80), uint8(2))
	f.Add(bytes.Repeat([]byte("*1\r\n"), 40), uint8(0))
	f.Fuzz(func(t *testing.T, answer []byte, kind uint8) {
		protocol := []bounded.Protocol{bounded.Redis, bounded.AMQP, bounded.MySQL, bounded.Postgres}[kind%4]
		whole, err := through(bounded.New(protocol), bytes.NewReader(answer))
		if !strings.HasPrefix(string(answer), whole) {
			t.Fatalf("%q is not the beginning of %q", whole, answer)
		}
		_, cut := through(bounded.New(protocol), iotest.OneByteReader(bytes.NewReader(answer)))
		if (err == nil) != (cut == nil) {
			t.Errorf("at once: %v; byte by byte: %v", err, cut)
		}
	})
}

// TestLine_LooksIntoWhatIsEncrypted says that a limit holds for what a driver gets.
func TestLine_LooksIntoWhatIsEncrypted(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		if _, err := io.WriteString(c, "+OK\r\n$9223372036854775000\r\n"); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	secure := server.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	secure.ServerName = "example.com"
	line := bounded.New(bounded.Redis)
	c, err := line.Dial(t.Context(), &net.Dialer{}, "tcp", server.Listener.Addr().String(), secure)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: example.com\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(c); err == nil || !strings.Contains(err.Error(), "9223372036854775000") {
		t.Errorf("%q, %v", got, err)
	}
}
