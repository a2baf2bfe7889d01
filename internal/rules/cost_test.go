package rules

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/expr-lang/expr/vm"

	"redrive/internal/job"
)

// costly are payloads of so many bytes that cost as much as possible.
func costly(bytes int) map[string]string {
	text := func(s string, n int) string { return `"` + strings.Repeat(s, n/len(s)) + `"` }
	list := func(s string, n int) string { return "[" + times(s, ",", n/(len(s)+1)) + "]" }
	pair := func(s string) string { return `{"a":` + s + `,"b":` + s + `}` }
	var members []string
	for n := range bytes / 2 / 9 {
		members = append(members, fmt.Sprintf(`"%04x":0`, n))
	}
	return map[string]string{
		"numbers": list("0", bytes), "texts": list(`"a"`, bytes), "words": list(`"aaaaaaaaaaaaaab"`, bytes), "objects": list("{}", bytes),
		"members": list(`{"a":1}`, bytes), "nothing": list("null", bytes), "lists": list("[[[]]]", bytes), "long": list(text("a", bytes/4), bytes),
		"text": text("a", bytes), "wide": text("é", bytes), "widest": text("ⱥ", bytes), "digits": text("7", bytes), "blanks": text(" ", bytes),
		"deep":      strings.Repeat("[", 100) + list("0", bytes) + strings.Repeat("]", 100),
		"two lists": pair(list("0", bytes/2)), "two texts": pair(text("a", bytes/2)), "two objects": pair("{" + strings.Join(members, ",") + "}"),
		"two nested": pair(list("[[]]", bytes/2)),
	}
}

// burdens are conditions that cost much each. Some fail, depending on the payload.
func burdens() []string {
	var all []string
	for _, in := range []string{
		"false", "(# == 0 ? 1 : 2) == 3", "# == 1", `# == "x"`, "# == #", "# == nil", ".a == 2", "#?.a == 2", "# in [7,8,9]", `# in [7,"a",nil]`, `"x" in #`, "# in #", "# in [#]",
		`# matches "x"`, `# matches "(a|b)+c"`, `# contains "aaab"`, `hasPrefix(#, "b")`, `indexOf(#, "aab") > 0`, `lastIndexOf(#, "ba") > 0`,
		`lower(#) == "x"`, `upper(lower(#)) == "x"`, `trim(#) == "x"`, `trim(#, "ab") == "x"`, `string(#) == "x"`, `string([#,#]) == "x"`, `type(#) == "x"`,
		"len(#) == 70", "int(#) == 7", "float(#) == 7", "abs(#) == 7", "round(#) == 7", "max(#, 1) > 1", "max([#, #]) > 1", "min(#, 1, 2, 3) > 1",
		"# + 1 == 2.5", `# + "x" == "x"`, "# ** 2.5 == 2", "-# == 7", "# / 7 == 1", "(# ?? 1) == 7", "(# == 1 ? 1 : 2) > 5", "#[0:1] == 1", "[#] == [1]",
		"[#, #, #] == [1]", "first(#) == 1", "# > 5", "# < #", "seconds(#) == seconds(1)", `duration(#) == seconds(1)`, "#index == -1",
		`"` + strings.Repeat("ab", 20) + `" contains #`, `lower("` + strings.Repeat("é", 20) + `") == #`,
	} {
		all = append(all, "any(job.payload, "+times("("+in+")", " or ", 3)+")", "any(job.payload, "+in+")", "len(filter(job.payload, "+in+")) == -1")
	}
	for _, out := range []string{
		"X == Y", "X != Y", "X < Y", "X in [Y, Y]", "X in Y", "1 in X", `"x" in X`, `X contains "aab"`, `X contains "` + strings.Repeat("a", 200) + `b"`,
		`X matches "(a|aa)+b"`, `X matches "(a?){9}c"`, `X matches "x"`, `X matches "(?i)\\w+\\W$"`, `X matches "(\\p{L}?)(\\p{L}?)z"`, `X matches "(a*)*(a|a?)+$x"`,
		`lower(X) == "x"`, `upper(X) == "x"`, `trim(X) == "x"`, `trim(X, " 7a") == "x"`, `trim(X, "` + strings.Repeat("é", 99) + `") == "x"`,
		`trim(X, "ыэюяⱥ") == "x"`, `string(X) == "x"`, "len(X) == -1", "int(X) == -1", "float(X) == -1", "max(X) == -1", "max(X, X) == -1", "min(X) == -1",
		"X + Y == X", `indexOf(X, "aab") == -2`, `lastIndexOf(X, "baa") == -2`, `lastIndexOf(X, "` + strings.Repeat("a", 200) + `b") == -2`, "X[1:] == Y", "first(X) == last(Y)",
		"duration(X) == seconds(1)", "[X, Y] == [Y, X]", "sum(X) == -1", "X[Y] == 1", "hasPrefix(X, \"aa\")", "type(X) == 1", "job.meta == X", "error.message == X",
	} {
		for _, xy := range [][2]string{{"job.payload", "job.payload"}, {"job.payload.a", "job.payload.b"}, {"lower(job.payload)", "upper(job.payload)"}, {"(job.payload + job.payload)", "job.payload"}} {
			all = append(all, "("+strings.NewReplacer("X", xy[0], "Y", xy[1]).Replace(out)+") and job.run == -1")
		}
	}
	return all
}

// filled joins as many conditions as an expression may have, going round.
func filled(conditions ...string) *expression {
	var best *expression
	text, refused := "", 0
	for k := 0; refused < len(conditions); k++ {
		next := text + "(" + conditions[k%len(conditions)] + ")"
		x, err := compile(next, failureFacts{}, condition)
		if err != nil {
			refused++
			continue
		}
		best, text, refused = x, next+" or ", 0
	}
	return best
}

// A yardstick is the costliest payload to decode, and how long that took at best.
type yardstick struct {
	payload string
	took    time.Duration
}

func (y yardstick) decode() {
	var v any
	if err := json.Unmarshal([]byte(y.payload), &v); err != nil {
		panic(err)
	}
}

func timed(do func()) time.Duration {
	start := time.Now()
	do()
	return time.Since(start)
}

// decodings is how many decodings an expression costs for a job. One that seems
// to cost more than the costliest so far is asked again, next to decodings that take
// about as long: what a busy machine does to one side it does to the other, which
// would not hold for a single decoding that fits between two interruptions.
func decodings(x *expression, f failureFacts, y yardstick, soFar float64) float64 {
	took, beside := time.Duration(1<<62), time.Duration(1<<62)
	for n := range 10 {
		took = min(took, timed(func() { _, _ = x.holds(f, f.Job) })) // that it fails is fine
		if n > 0 {
			beside = min(beside, timed(func() {
				for range asLong {
					y.decode()
				}
			}))
			y.took = beside / asLong
		}
		surely := n == 0 || n >= 3 // one slow decoding makes anything look cheap
		if surely && float64(took) <= soFar*float64(y.took) {
			break
		}
	}
	return float64(took) / float64(y.took)
}

// asLong is how many decodings the costliest expressions take at most.
const asLong = 20

// costlyJobs are jobs with costly payloads of so many bytes, by the name of the payload.
func costlyJobs(t testing.TB, bytes int) map[string]failureFacts {
	t.Helper()
	all := map[string]failureFacts{}
	for name, payload := range costly(bytes) {
		f := failing(payload)
		f.Error.Message = strings.Repeat("a", min(bytes, job.MaxErrorMessage))
		if err := f.Job.fill(true, true); err != nil {
			t.Fatal(err)
		}
		all[name] = f
	}
	return all
}

// costliest is the payload of so many bytes that takes the longest to decode.
func costliest(bytes int) (all yardstick) {
	for _, payload := range costly(bytes) {
		y := yardstick{payload: payload, took: time.Duration(1 << 62)}
		for range 10 {
			y.took = min(y.took, timed(y.decode))
		}
		if y.took > all.took {
			all = y
		}
	}
	return all
}

// conditions are the burdens one by one, and a hundred mixtures of three.
func conditions() (all [][]string) {
	single := burdens()
	for _, one := range single {
		all = append(all, []string{one})
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		all = append(all, []string{single[random.IntN(len(single))], single[random.IntN(len(single))], single[random.IntN(len(single))]})
	}
	return all
}

// worst is how many decodings the worst of all expressions costs that do one
// thing, or several, as often as they may.
func worst(payloads map[string]failureFacts, y yardstick) (cost float64, what string) {
	for _, c := range conditions() {
		x := filled(c...)
		if x == nil { // too much in itself
			continue
		}
		for name, f := range payloads {
			if of := decodings(x, f, y, cost); of > cost {
				cost, what = of, name+": "+x.program.Source().String()
			}
		}
	}
	return cost, what
}

// instructions counts what a program executes at most when each of its loops goes through
// a list of so many entries. No loop may stand in another.
func instructions(t *testing.T, program *vm.Program, entries int) (all int) {
	t.Helper()
	all = len(program.Bytecode)
	end := 0 // of the loop before
	for at, op := range program.Bytecode {
		if op != vm.OpJumpBackward {
			continue
		}
		begin := at + 1 - program.Arguments[at]
		if begin < end {
			t.Errorf("a loop is inside another: %s", program.Source())
		}
		all += (at + 1 - begin) * entries
		end = at + 1
	}
	return all
}

// TestExpression_PaysForEachInstruction holds the promise of docs/rules.md by counting: what
// compiles keeps within its budget, and the budget covers each instruction that the largest
// payload can make it execute. How long the worst expressions take is the business of
// BenchmarkWorstExpression.
func TestExpression_PaysForEachInstruction(t *testing.T) {
	for _, c := range conditions() {
		x := filled(c...)
		if x == nil { // too much in itself
			continue
		}
		if x.cost > maxCost {
			t.Errorf("costs %d, at most %d are allowed: %s", x.cost, maxCost, x.program.Source())
		}
		n := instructions(t, x.program, job.MaxPayload/smallest)
		if n > x.cost+10*maxNodes { // outside of loops, an instruction costs nothing
			t.Errorf("pays %d and executes %d instructions: %s", x.cost, n, x.program.Source())
		}
	}
}

// TestExpression_WorstEnds runs the worst expressions on costly payloads: with anything that
// is worse than linear they would not end. Here one in sixteen.
func TestExpression_WorstEnds(t *testing.T) { worstEnds(t, 16) }

func TestLong_ExpressionWorstEnds(t *testing.T) { worstEnds(t, 1) }

func worstEnds(t *testing.T, stride int) {
	t.Helper()
	payloads := costlyJobs(t, 16<<10)
	for i, c := range conditions() {
		if i%stride != 0 {
			continue
		}
		if x := filled(c...); x != nil {
			for _, f := range payloads {
				_, _ = x.holds(f, f.Job) // that it fails is fine
			}
		}
	}
}

// BenchmarkWorstExpression tells the cost of the worst expression for a payload
// of the largest size.
func BenchmarkWorstExpression(b *testing.B) {
	payloads, y := costlyJobs(b, job.MaxPayload), costliest(job.MaxPayload)
	for b.Loop() {
		cost, what := worst(payloads, y)
		b.ReportMetric(cost, "decodings/worst")
		b.ReportMetric(float64(y.took.Milliseconds()), "ms/decoding")
		b.Log(what)
	}
}
