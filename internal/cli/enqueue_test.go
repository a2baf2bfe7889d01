package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"redrive/internal/cli/console"
	"redrive/internal/cli/reach"
	"redrive/internal/fault"
	"redrive/internal/job"
	"redrive/internal/server/problem"
	"redrive/internal/usage"
	"redrive/test/rig"
)

func TestEnqueue_RefusesAKeyWithALineBreak(t *testing.T) {
	if err := (&enqueueCommand{Type: "t", Key: "a\nb", Dashboard: reach.Dashboard{Server: "http://127.0.0.1:1"}}).Run(console.Console{}); !errors.As(err, new(usage.Error)) {
		t.Errorf("got %v, want a usage error", err)
	}
}

func TestEnqueue_FromTheCommandLine(t *testing.T) {
	dir := t.TempDir()
	p := rig.Start(t, dir)
	send := func(stdin string, args ...string) (int, string, string) {
		cmd := rig.Command(t, dir, append([]string{"enqueue", "--server", p.URL}, args...)...)
		cmd.Stdin = strings.NewReader(stdin)
		return rig.Finish(t, cmd)
	}
	code, stdout, stderr := send("", "email.send", `{"to": "ana"}`, "--queue", "mail", "--policy", `{"max_attempts":7}`, "--priority", "5", "--delay", "1h", "--key", "k1")
	id, state, _ := strings.Cut(strings.TrimSpace(stdout), " ")
	if code != 0 || state != "scheduled" {
		t.Fatalf("exit %d: %s%s", code, stdout, stderr)
	}
	type shown struct {
		Job struct {
			Queue    string
			Priority int
			Policy   struct {
				MaxAttempts int `json:"max_attempts"`
			}
		}
	}
	if j := rig.Get[shown](t, p.URL+"/api/v1/jobs/"+id).Job; j.Queue != "mail" || j.Priority != 5 || j.Policy.MaxAttempts != 7 {
		t.Errorf("job %+v", j)
	}
	if code, stdout, _ := send("", "email.send", `{"to": "ana"}`, "--queue", "mail", "--key", "k1"); code != 0 || !strings.Contains(stdout, id) || !strings.Contains(stdout, "already") {
		t.Errorf("the repeat: exit %d, %s", code, stdout)
	}
	if code, _, stderr := send("", "email.send", "--key", "k1"); code != 2 || !strings.Contains(stderr, "this key was used before for a different request") {
		t.Errorf("another job under the key: exit %d, %s", code, stderr)
	}
	if code, _, stderr := send("", "email.send", "--policy", `{"max_attempts":-1}`); code != 2 || !strings.Contains(stderr, "policy.max_attempts") {
		t.Errorf("a bad policy: exit %d, %s", code, stderr)
	}
}

func TestEnqueue_TellsThatAPayloadIsTooLarge(t *testing.T) {
	large := `"` + strings.Repeat("x", job.MaxPayload) + `"`
	_, err := (&enqueueCommand{Type: "t", Payload: new("-")}).body(strings.NewReader(large))
	if !errors.As(err, new(usage.Error)) || !strings.Contains(err.Error(), "the payload is larger than 1048576 bytes") {
		t.Errorf("got %v", err)
	}
	if _, err := (&enqueueCommand{Type: "t", Payload: new("-")}).body(strings.NewReader(large[2:])); err == nil || !strings.Contains(err.Error(), "not JSON") {
		t.Errorf("a broken payload of the right size: %v", err)
	}
}

// A variable that is not set must not enqueue a job without its payload.
func TestEnqueue_RefusesAnEmptyPayload(t *testing.T) {
	for _, payload := range []string{"", " \n"} {
		cmd := rig.Command(t, t.TempDir(), "enqueue", "t", payload, "--server", "http://127.0.0.1:1")
		cmd.Stdin = strings.NewReader("[1]")
		const want = "dashboard: the payload is empty; to enqueue a job without a payload, write null\n"
		if code, _, stderr := rig.Finish(t, cmd); code != 2 || stderr != want {
			t.Errorf("%q: exit %d, %s", payload, code, stderr)
		}
	}
}

// enqueueAt returns a function that runs dashboard enqueue with a standard input,
// against a process. It returns the jobs that the command printed.
func enqueueAt(t *testing.T, p *rig.Process) func(stdin string, args ...string) (made []enqueued, stderr string) {
	return func(stdin string, args ...string) (made []enqueued, stderr string) {
		t.Helper()
		cmd := rig.Command(t, t.TempDir(), append([]string{"enqueue", "--json", "--server", p.URL}, args...)...)
		cmd.Stdin = strings.NewReader(stdin)
		_, stdout, stderr := rig.Finish(t, cmd)
		for d := json.NewDecoder(strings.NewReader(stdout)); ; {
			var j enqueued
			if err := d.Decode(&j); errors.Is(err, io.EOF) {
				return made, stderr
			} else if err != nil {
				t.Fatalf("%v: %s", err, stdout)
			}
			made = append(made, j)
		}
	}
}

// enqueued is a job as enqueue --json prints it.
type enqueued struct {
	ID, State, TTR string
	Payload        json.RawMessage
	RunAt          time.Time `json:"run_at"`
	Policy         struct {
		MaxAttempts int `json:"max_attempts"`
	}
}

func TestEnqueue_ReadsThePayloadFromAPipe(t *testing.T) {
	send := enqueueAt(t, rig.Start(t, t.TempDir()))
	for _, args := range [][]string{{"t"}, {"t", "-"}} {
		if made, stderr := send(` [1,  2.50] `, args...); len(made) != 1 || string(made[0].Payload) != "[1,2.50]" {
			t.Errorf("%v: %+v, %s", args, made, stderr)
		}
	}
	if made, stderr := send("[1]", "t", "[2]"); len(made) != 1 || string(made[0].Payload) != "[2]" {
		t.Errorf("a payload on the command line: %+v, %s", made, stderr)
	}
	if made, stderr := send("", "t"); len(made) != 1 || string(made[0].Payload) != "null" {
		t.Errorf("an empty standard input: %+v, %s", made, stderr)
	}
}

func TestEnqueue_TakesTimesAndDurations(t *testing.T) {
	send := enqueueAt(t, rig.Start(t, t.TempDir()))
	begin := time.Now()
	for _, ttr := range []string{"5s", "PT5S"} {
		if made, stderr := send("", "t", "--ttr", ttr); len(made) != 1 || made[0].TTR != "PT5S" {
			t.Errorf("--ttr %s: %+v, %s", ttr, made, stderr)
		}
	}
	if made, stderr := send("", "t", "--run-at", "2099-01-31T15:04:05+01:00"); len(made) != 1 ||
		!made[0].RunAt.Equal(time.Date(2099, 1, 31, 14, 4, 5, 0, time.UTC)) {
		t.Errorf("--run-at with a time: %+v, %s", made, stderr)
	}
	for _, flag := range []string{"--run-at", "--delay"} {
		for _, hour := range []string{"1h", "PT1H"} {
			made, stderr := send("", "t", flag, hour)
			if len(made) != 1 || made[0].State != "scheduled" || made[0].RunAt.Before(begin.Add(time.Hour)) {
				t.Errorf("%s %s: %+v, %s", flag, hour, made, stderr)
			}
		}
	}
}

func TestEnqueue_TakesAPolicyByItsName(t *testing.T) {
	send := enqueueAt(t, rig.Start(t, t.TempDir()))
	if made, stderr := send("", "t", "--policy", "sidekiq"); len(made) != 1 || made[0].Policy.MaxAttempts != 26 {
		t.Errorf("%+v, %s", made, stderr)
	}
	if made, stderr := send("", "t", "--policy", "nosuch"); len(made) != 0 || !strings.Contains(stderr, `there is no policy "nosuch"`) {
		t.Errorf("%+v, %s", made, stderr)
	}
}

func TestEnqueue_WarnsOfATypeWithoutAHandler(t *testing.T) {
	dir := t.TempDir()
	rig.Write(t, dir, "redrive.yaml", "handlers: {known: {exec: {command: [/bin/true]}}}\n")
	send := enqueueAt(t, rig.Start(t, dir))
	if _, stderr := send("", "known"); stderr != "" {
		t.Errorf("a type with a handler: %s", stderr)
	}
	const want = "warning: no handler is configured for jobs of type b, a: they wait until one is\n"
	if _, stderr := send(`{"type":"b"}`+"\n"+`{"type":"a"}`+"\n"+`{"type":"b"}`, "--ndjson"); stderr != want {
		t.Errorf("it says %q, want %q", stderr, want)
	}
}

// lines are n jobs, with an empty line after each.
func lines(n int) string { return strings.Repeat(`{"type": "t", "payload": 1.50}`+"\n\n", n) }

func TestEnqueue_SendsAJobOnEachLineInBatches(t *testing.T) {
	p := rig.Start(t, t.TempDir())
	send := enqueueAt(t, p)
	all := lines(job.MaxBatch + 5)
	if made, stderr := send(all, "--ndjson", "--key", "import"); len(made) != job.MaxBatch+5 {
		t.Fatalf("%d jobs: %s", len(made), stderr)
	}
	send(all, "--ndjson", "--key", "import")
	if n := p.Until(func(rig.Totals) bool { return true }).States["available"]; n != job.MaxBatch+5 {
		t.Errorf("after a repeat under the same key there are %d jobs, want %d", n, job.MaxBatch+5)
	}
}

// An input that fits into one batch is enqueued as a whole or not at all, whatever is
// wrong with which line: then it can be sent again.
func TestEnqueue_ABatchOfLinesIsAllOrNothing(t *testing.T) {
	p := rig.Start(t, t.TempDir())
	send := enqueueAt(t, p)
	good := strings.TrimSuffix(lines(1200), "\n\n") + "\n"
	for wrong, want := range map[string]string{
		"{":                         "line 2400 of standard input is not JSON",
		`{"type": "t", "ttr": "x"}`: "line 2400, ttr: ",
		`{"type": "t"} {}`:          "line 2400 of standard input is not JSON",
	} {
		made, stderr := send(good+wrong+"\n"+good, "--ndjson")
		if len(made) != 0 || !strings.Contains(stderr, want) || !strings.Contains(stderr, "; nothing was enqueued") {
			t.Errorf("%s: %d jobs, %s; want %q", wrong, len(made), stderr, want)
		}
	}
	if n := p.Until(func(rig.Totals) bool { return true }).States["available"]; n != 0 {
		t.Errorf("there are %d jobs", n)
	}
}

func TestEnqueue_SaysWhichLinesWereEnqueuedBeforeAnError(t *testing.T) {
	saysWhichLinesWereEnqueued(t, "{", "line 20003 of standard input is not JSON")
}

func TestLong_EnqueueSaysWhichLinesWereEnqueuedBeforeAWrongValue(t *testing.T) {
	saysWhichLinesWereEnqueued(t, `{"type": "t", "ttr": "x"}`, "line 20003, ttr: ")
}

func saysWhichLinesWereEnqueued(t *testing.T, wrong, want string) {
	t.Helper()
	p := rig.Start(t, t.TempDir())
	made, stderr := enqueueAt(t, p)(lines(job.MaxBatch+1)+wrong+"\n", "--ndjson")

	if len(made) != job.MaxBatch || !strings.Contains(stderr, want) ||
		!strings.Contains(stderr, "; lines 1 to 19999 were enqueued, and nothing after them: continue with line 20000") {
		t.Errorf("%s: %d jobs, %s; want %q", wrong, len(made), stderr, want)
	}
}

// answering is the address of a server that gives every request the same answer.
func answering(t *testing.T, status int, body []byte) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(status)
		_, _ = w.Write(body)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// What the command says about a failure is what the answer promises: jobs that may have
// been enqueued must not be sent again without a look.
func TestEnqueue_ClaimsNoMoreThanTheAnswerPromises(t *testing.T) {
	for _, failure := range []error{
		fault.ErrOverloaded, fault.ErrStarved, fault.ErrBusy, fault.ErrStorageFull, fault.ErrReadOnly, fault.ErrUnsafe, // these promise it
		fault.ErrCorrupt, fault.ErrBroken, context.DeadlineExceeded, io.ErrUnexpectedEOF,
		problem.New(problem.Overloaded, "nothing was changed"), problem.New(problem.TooMany, "nothing was changed"),
		problem.New(problem.RulesTooSlow, "nothing was enqueued"), problem.New(problem.InvalidValue, "nothing was changed"),
	} {
		f := problem.Of(failure)
		address := answering(t, f.Kind.Status, f.Encode())
		promised := strings.Contains(f.Text, "nothing was")
		for _, test := range []struct {
			enqueueCommand
			none, perhaps string
		}{
			{enqueueCommand{Type: "t"}, "the job was ", `the job may have been enqueued: run "dashboard list" to check before you send it again`},
			{enqueueCommand{Type: "t", Key: "k"}, "the job was ", "the job may have been enqueued: run the same command again, the key prevents doubles"},
			{enqueueCommand{NDJSON: true}, "; nothing was enqueued", `; lines 1 to 5 may have been enqueued: run "dashboard list" to check before you send them again`},
			{enqueueCommand{NDJSON: true, Key: "k"}, "; nothing was enqueued", "; lines 1 to 5 may have been enqueued: run the same command again, the key prevents doubles"},
		} {
			input := ""
			if test.NDJSON {
				input = lines(3)
			}
			test.Server = address
			err := test.Run(console.Console{Stdin: strings.NewReader(input)})
			want, not := test.none, "may have been enqueued"
			if !promised {
				want, not = test.perhaps, test.none
			}
			if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), not) {
				t.Errorf("%s, --ndjson %v, --key %q: %v; want %q", f.Kind.Code, test.NDJSON, test.Key, err, want)
			}
		}
	}
}

// Without an answer no one knows what became of a batch, so only a key makes it safe to
// send the lines again.
func TestEnqueue_SaysWhichLinesMayBeEnqueuedWithoutAnAnswer(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	go func() {
		for conn, err := silent.Accept(); err == nil; conn, err = silent.Accept() {
			_, _ = io.ReadFull(conn, make([]byte, 100))
			conn.Close()
		}
	}()
	address := "http://" + silent.Addr().String()
	for _, test := range []struct {
		args []string
		want string
	}{
		{nil, "; lines 1 to 5 may have been enqueued: run \"dashboard list\" to check before you send them again"},
		{[]string{"--key", "k"}, "; lines 1 to 5 may have been enqueued: run the same command again, the key prevents doubles"},
	} {
		cmd := rig.Command(t, t.TempDir(), append([]string{"enqueue", "--ndjson", "--server", address}, test.args...)...)
		cmd.Stdin = strings.NewReader(lines(3))
		if code, _, stderr := rig.Finish(t, cmd); code != 1 || !strings.Contains(stderr, test.want) {
			t.Errorf("%v: exit %d, %s; want %q", test.args, code, stderr, test.want)
		}
	}
	silent.Close()
	cmd := rig.Command(t, t.TempDir(), "enqueue", "--ndjson", "--server", address)
	cmd.Stdin = strings.NewReader(lines(3))
	if code, _, stderr := rig.Finish(t, cmd); code != 1 || !strings.Contains(stderr, "; nothing was enqueued") {
		t.Errorf("nobody listens: exit %d, %s", code, stderr)
	}
}

// Jobs that cannot be printed are enqueued all the same, and a user who runs the command
// again without knowing that makes doubles.
func TestEnqueue_SaysWhatWasEnqueuedWhenItCannotBePrinted(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	p := rig.Start(t, t.TempDir())
	for _, test := range []struct {
		args        []string
		input, want string
	}{
		{[]string{"t"}, "", "the job was enqueued, but cannot be printed: write /dev/stdout: no space left on device\n"},
		{[]string{"--ndjson"}, lines(3), "write /dev/stdout: no space left on device; lines 1 to 5 were enqueued, and nothing after them: continue with line 6\n"},
	} {
		for _, format := range [][]string{nil, {"--json"}} {
			cmd := rig.Command(t, t.TempDir(), slices.Concat([]string{"enqueue", "--server", p.URL}, format, test.args)...)
			var stderr bytes.Buffer
			cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(test.input), full, &stderr
			if err := cmd.Run(); cmd.ProcessState.ExitCode() != 1 || !strings.Contains(stderr.String(), test.want) {
				t.Errorf("%v %v: %v, %s; want %q", format, test.args, err, &stderr, test.want)
			}
		}
	}
	if n := p.Until(func(rig.Totals) bool { return true }).States["available"]; n != 8 {
		t.Errorf("there are %d jobs, want 8", n)
	}
}

// A batch for which the dashboard has no place is sent again: the refusal promises that
// nothing was changed.
func TestEnqueue_ABatchWaitsForItsTurn(t *testing.T) {
	dir := t.TempDir()
	rig.Write(t, dir, "redrive.yaml", "limits: {batches: 1}\n")
	p := rig.Start(t, dir)
	// An import that has begun holds the only place.
	conn, err := net.Dial("tcp", strings.TrimPrefix(p.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "POST /api/v1/jobs/batch HTTP/1.1\r\nHost: localhost\r\n"+
		"Content-Type: application/json\r\nContent-Length: 8000000\r\n\r\n{"); err != nil {
		t.Fatal(err)
	}
	person, program := rig.Terminal(t)
	said := rig.NewTranscript()
	go func() { _, _ = io.Copy(said, person) }()
	cmd := rig.Command(t, dir, "enqueue", "--ndjson", "--server", p.URL)
	line := `{"type":"t","payload":"` + strings.Repeat("x", 1<<20-100) + `"}` + "\n"
	var stdout bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(strings.Repeat(line, 12)), &stdout, program
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said.Await(t, "sending lines 1 to 12")
	said.Await(t, "waiting to send lines 1 to 12: the dashboard is busy")
	conn.Close()
	if err := cmd.Wait(); err != nil || strings.Count(stdout.String(), "\n") != 12 {
		t.Errorf("%v: %s%s", err, &stdout, said)
	}
}

// What lasts too long is an error, and so is what no repeat would change.
func TestEnqueue_DoesNotTryForever(t *testing.T) {
	for _, test := range []struct {
		code  string
		after string
		asked int
	}{
		{"overloaded", "1", 2}, {"overloaded", "3600", 1}, {"rules_too_slow", "1", 1}, {"too_slow", "1", 1}, {"invalid_value", "", 1},
	} {
		asked := 0
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if asked++; asked > 1 {
				test.after = "3600"
			}
			w.Header().Set("Retry-After", test.after)
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprintf(w, `{"error": {"code": %q, "message": "no"}}`, test.code)
		}))
		e := enqueueCommand{NDJSON: true, Dashboard: reach.Dashboard{Server: s.URL}}
		err := e.Run(console.Console{Stdin: strings.NewReader(lines(3))})
		s.Close()
		if err == nil || asked != test.asked {
			t.Errorf("%s: asked %d times, want %d: %v", test.code, asked, test.asked, err)
		}
	}
}

func TestEnqueue_SendsBatchesOfTheSizeAskedFor(t *testing.T) {
	var sizes []int
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var sent, answer struct {
			Jobs []map[string]any `json:"jobs"`
		}
		if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
			t.Error(err)
		}
		sizes = append(sizes, len(sent.Jobs))
		for range sent.Jobs {
			answer.Jobs = append(answer.Jobs, map[string]any{"id": "1", "state": "available"})
		}
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(answer)
	}))
	defer s.Close()
	send := func(args ...string) (int, string) {
		cmd := rig.Command(t, t.TempDir(), append([]string{"enqueue", "--server", s.URL}, args...)...)
		cmd.Stdin = strings.NewReader(lines(7))
		code, _, stderr := rig.Finish(t, cmd)
		return code, stderr
	}
	if code, stderr := send("--ndjson", "--batch-size", "3"); code != 0 || !slices.Equal(sizes, []int{3, 3, 1}) {
		t.Errorf("exit %d, %s: batches of %v jobs", code, stderr, sizes)
	}
	for _, args := range [][]string{
		{"--ndjson", "--batch-size", "0"}, {"--ndjson", "--batch-size", "10001"}, {"--ndjson", "--batch-size=-1"}, {"t", "--batch-size", "5"},
	} {
		if code, stderr := send(args...); code != 2 || !strings.Contains(stderr, "--batch-size ") {
			t.Errorf("%v: exit %d, %s", args, code, stderr)
		}
	}
}

// A line that is slower than the usual time allows still takes a large batch.
func TestLong_EnqueueSendsALargeBatchOverASlowLine(t *testing.T) {
	p := rig.Start(t, t.TempDir())
	slow, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	var pauses atomic.Int64 // of half a second each
	go func() {
		for near, err := slow.Accept(); err == nil; near, err = slow.Accept() {
			far, err := net.Dial("tcp", strings.TrimPrefix(p.URL, "http://"))
			if err != nil {
				t.Error(err)
				return
			}
			go func() { _, _ = io.Copy(near, far); near.Close() }()
			go func() {
				defer far.Close()
				for range time.Tick(500 * time.Millisecond) { // 768 KiB a second
					pauses.Add(1)
					if _, err := io.CopyN(far, near, 384<<10); err != nil {
						return
					}
				}
			}()
		}
	}()
	cmd := rig.Command(t, t.TempDir(), "enqueue", "--ndjson", "--server", "http://"+slow.Addr().String())
	line := `{"type":"t","payload":"` + strings.Repeat("x", 1<<20-100) + `"}` + "\n"
	cmd.Stdin = strings.NewReader(strings.Repeat(line, 30))
	if code, stdout, stderr := rig.Finish(t, cmd); code != 0 || strings.Count(stdout, "\n") != 30 || pauses.Load() < 70 {
		t.Errorf("exit %d after %d pauses: %s%s", code, pauses.Load(), stdout, stderr)
	}
}

// A batch has room for no more bytes than a request.
func TestLineReader_MakesBatchesThatFitIntoARequest(t *testing.T) {
	line := `{"type":"t","payload":"` + strings.Repeat("x", 1<<20-100) + `"}`
	r := newLineReader(strings.NewReader(strings.Repeat(line+"\n", 70)), job.MaxBatch)
	var sizes []int
	for {
		b, err := r.next()
		if len(b.lines) > 0 {
			sizes = append(sizes, len(b.lines))
		}
		if n := len(bytes.Join(b.lines, []byte(","))) + len(`{"jobs":[]}`); n > batchBytes {
			t.Errorf("a batch of %d bytes", n)
		}
		if err != nil {
			break
		}
	}
	if !slices.Equal(sizes, []int{64, 6}) {
		t.Errorf("batches of %d lines", sizes)
	}
}

// A failure that is about the way to the dashboard says what to do about it; one of a batch
// names its lines; and only what was asked wrongly ends with exit status 2.
func TestEnqueue_SaysWhatToDo(t *testing.T) {
	body := func(message string) []byte {
		return fmt.Appendf(nil, `{"error": {"code": "x", "message": %q}}`, message)
	}
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closedAt := "http://" + closed.Addr().String()
	closed.Close()
	for _, test := range []struct {
		name, address string
		code          int
		want          string // with % in the place of what was not enqueued
	}{
		{"401", answering(t, 401, body("log in")), 2, "% not enqueued: the dashboard at 127.0.0.1:"},
		{"401", answering(t, 401, body("log in")), 2, "set REDRIVE_TOKEN"},
		{"404", answering(t, 404, body("nothing exists at this address")), 2, "--base-path"},
		{"422", answering(t, 422, body("is wrong")), 2, "% refused: is wrong"},
		{"429", answering(t, 429, body("your address has reached a limit")), 1, "% not enqueued: your address has reached a limit"},
		{"503", answering(t, 503, []byte(`{"error": {"code": "storage_full", "message": "the disk is full"}}`)), 1, "% not enqueued: the disk is full"},
		{"none", closedAt, 1, "% not sent: "},
	} {
		for subject, args := range map[string][]string{"the job was": {"t"}, "lines 1 to 5 were": {"--ndjson"}} {
			var out bytes.Buffer
			c := console.Console{Stdin: strings.NewReader(lines(3)), Stdout: &out, Stderr: &out, Signals: noSignals}
			if len(args) == 1 && args[0] == "t" {
				c.Stdin = strings.NewReader("{}")
			}

			code := Execute(append([]string{"enqueue", "--server", test.address}, args...), c)
			if test.address == closedAt {
				subject = strings.Replace(subject, "lines 1 to 5", "the jobs", 1)
			}
			if want := strings.Replace(test.want, "%", subject, 1); code != test.code || !strings.Contains(out.String(), want) {
				t.Errorf("%s, %v: exit %d, %s, want %d, %s", test.name, args, code, &out, test.code, want)
			}
		}
	}
}

// A limit of the dashboard is none of what was asked wrongly, whatever the command is.
func TestRun_OfALimitEndsWithOne(t *testing.T) {
	var out bytes.Buffer
	address := answering(t, 429, []byte(`{"error": {"code": "too_many", "message": "your address has reached a limit"}}`))
	code := Execute([]string{"list", "--server", address}, console.Console{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out, Signals: noSignals})
	if code != 1 || !strings.Contains(out.String(), "refused: your address has reached a limit") {
		t.Errorf("exit %d, %s", code, &out)
	}
}
