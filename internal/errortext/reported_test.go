package errortext_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"redrive/internal/errortext"
	"redrive/internal/fingerprint"
	"redrive/internal/plaintext"
)

// reported says what a person reads first in each text of testdata/reported. The texts are
// after public reports about other queues and trackers, whose users saw a footer, a wrapper or
// nothing. Texts whose names begin with the same letter are of one cause, all others in a
// folder are not.
var reported = map[string]string{
	"docker/a1":                "docker: Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?",
	"docker/b1":                `invalid argument "abc" for "-m, --memory" flag: invalid size: 'abc'`,
	"elixir-exit/a1":           "exit: exited in: GenServer.call(#PID<0.11046.0>, :leader?, 5000); caused by time out",
	"elixir-exit/a2":           "exit: exited in: GenServer.call(#PID<0.11343.0>, :leader?, 5000); caused by time out",
	"elixir-exit/b1":           "exit: exited in: GenServer.call(#PID<0.11046.0>, :leader?, 5000); caused by no process: the process is not alive",
	"git/a1":                   "fatal: '/srv/nosuch-1.git' does not appear to be a git repository",
	"git/b1":                   "fatal: invalid gitfile format: /etc/passwd",
	"go-cobra-usage/a1":        "Error: connect to 10.0.0.7:5432: connection refused",
	"go-cobra-usage/a2":        "Error: connect to 10.0.0.9:5432: connection refused",
	"go-cobra-usage/b1":        "Error: feed 17 has no column price",
	"java-wrapper/a1":          "java.lang.IllegalStateException: job failed; caused by java.net.ConnectException: Connection refused",
	"java-wrapper/a2":          "java.lang.IllegalStateException: job failed; caused by java.net.ConnectException: Connection refused",
	"java-wrapper/b1":          "java.lang.IllegalStateException: job failed; caused by java.net.UnknownHostException: nosuch.invalid",
	"javascript-bundle/a1":     "TypeError: Cannot read properties of undefined (reading 'price')",
	"javascript-bundle/a2":     "TypeError: Cannot read properties of undefined (reading 'price')",
	"javascript-bundle/b1":     "TypeError: Cannot read properties of undefined (reading 'price')",
	"node-rejection/a1":        "UnhandledPromiseRejection: AxiosError: Request failed with status code 400",
	"node-rejection/b1":        "UnhandledPromiseRejection: #<Object>",
	"npm-footer/a1":            "card 17 declined",
	"npm-footer/b1":            "mailbox full",
	"pg_dump/a1":               `pg_dump: error: connection to server at "127.0.0.1", port 21340 failed: FATAL:  database "nosuchdb" does not exist`,
	"php-previous/a1":          "App\\FeedException: the feed could not be loaded; caused by PDOException: SQLSTATE[HY000] [2002] Connection refused",
	"php-previous/a2":          "App\\FeedException: the feed could not be loaded; caused by PDOException: SQLSTATE[HY000] [2002] Connection refused",
	"php-previous/b1":          "App\\FeedException: the feed could not be loaded; caused by PDOException: SQLSTATE[42S02]: Base table or view not found",
	"prisma-colours/a1":        "Unique constraint failed on the fields: (`email`)",
	"prisma-colours/a2":        "Unique constraint failed on the fields: (`email`)",
	"prisma-colours/b1":        "Unique constraint failed on the fields: (`sku`)",
	"psql/a1":                  `ERROR:  duplicate key value violates unique constraint "failed_jobs_uuid_key"`,
	"psql/a2":                  `ERROR:  duplicate key value violates unique constraint "failed_jobs_uuid_key"`,
	"psql/b1":                  `ERROR:  duplicate key value violates unique constraint "u2"`,
	"python-chain/a1":          "feeds.errors.JobError: failed to convert file; caused by feeds.errors.FormatError: incorrect data",
	"python-chain/a2":          "feeds.errors.JobError: failed to convert file; caused by feeds.errors.FormatError: incorrect data",
	"python-chain/b1":          "feeds.errors.JobError: failed to convert file; caused by OSError: [Errno 28] No space left on device",
	"ruby-inspected-object/a1": "undefined method `status_active?' for #<User id: 1557",
	"ruby-inspected-object/a2": "undefined method `status_active?' for #<User id: 88",
	"ruby-inspected-object/b1": "undefined method `total_cents' for #<Order id: 88",
	"ruby-methods/a1":          "undefined method `in_group?' for nil:NilClass",
	"ruby-methods/a2":          "undefined method 'in_group?' for nil",
	"ruby-methods/b1":          "undefined method `paid?' for nil:NilClass",
	"ruby-methods/c1":          "undefined method `[]' for nil:NilClass",
	"ruby-methods/d1":          "undefined method `+' for nil:NilClass",
	"ruby-methods/f1":          "undefined method 'save!' for nil",
	"ruby-methods/g1":          "undefined method 'name=' for an instance of Order",
	"ruby-methods/h1":          "undefined method 'total=' for an instance of Order",
	"ruby-rake-footer/a1":      `ActiveRecord::ConnectionNotEstablished: connection to server at "10.0.0.7", port 5432 failed: Connection refused`,
	"ruby-rake-footer/a2":      `ActiveRecord::ConnectionNotEstablished: connection to server at "10.0.0.9", port 5432 failed: Connection refused`,
	"ruby-rake-footer/b1":      "NoMethodError: undefined method `starts_at' for nil:NilClass",
	"scp/a1":                   "ssh: connect to host 127.0.0.1 port 21399: Connection refused",
	"scp/b1":                   "ssh: Could not resolve hostname nosuch.invalid: Name or service not known",
	"shift-jis/a1":             "データベースに接続できません",
	"shift-jis/b1":             "メールを送信できません",
	"windows-1252/a1":          "Aucune connexion n’a pu être établie",
	"windows-1252/b1":          "Le compte est bloqué",
	"xml-bodies/a1":            "NoSuchKey: The specified key does not exist.",
	"xml-bodies/a2":            "NoSuchKey: The specified key does not exist.",
	"xml-bodies/b1":            "InvalidObjectState: The operation is not valid for the storage class of the object",
	"xml-bodies/c1":            "the card has expired",
}

func TestReported_SaysWhatFailedAndGroupsItByItsCause(t *testing.T) {
	read := 0
	folders, err := filepath.Glob("testdata/reported/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range folders {
		t.Run(filepath.Base(folder), func(t *testing.T) {
			texts, err := filepath.Glob(folder + "/*")
			if err != nil {
				t.Fatal(err)
			}
			causes, groups := map[string]string{}, map[string]string{} // by each other
			for _, name := range texts {
				e, group := readReported(t, name)
				key := strings.TrimSuffix(strings.TrimPrefix(name, "testdata/reported/"), filepath.Ext(name))
				want, known := reported[key]
				if !known || !strings.HasPrefix(e.String(), want) {
					t.Errorf("%s says %q, want %q", key, e.String(), want)
				}

				cause := filepath.Base(name)[:1]
				if other, seen := causes[group]; seen && other != cause {
					t.Errorf("the causes %s and %s are one group", other, cause)
				}
				if other, seen := groups[cause]; seen && other != group {
					t.Errorf("the cause %s is two groups", cause)
				}
				causes[group], groups[cause] = cause, group
				read++
			}
		})
	}
	if read != len(reported) {
		t.Errorf("%d texts were read, %d are known", read, len(reported))
	}
}

// readReported reads a text as its producer's would be: an answer in XML, or the output of a
// program, in the encoding that its folder names.
func readReported(t *testing.T, name string) (e errortext.Error, group string) {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}

	text := string(content)
	switch folder := filepath.Base(filepath.Dir(name)); folder {
	case "windows-1252", "shift-jis":
		text = plaintext.Decode(content, "text/plain; charset="+strings.ReplaceAll(folder, "shift-jis", "Shift_JIS"))
		e = errortext.Program(text, "")
	case "xml-bodies":
		e, _ = errortext.Body(text)
	default:
		e = errortext.Program(text, "")
	}
	return e, fingerprint.Of("job", "exec.exit_1", e.String(), plaintext.Plain(text)).Fingerprint
}
