package errortext

import "strings"

// rule gives a weight to lines by how they begin, what is in them or how they end. All its
// texts are in small letters.
type rule struct {
	weight                      weight
	beginnings, inside, endings []string
}

func (r *rule) fits(s string) bool {
	for _, beginning := range r.beginnings {
		if strings.HasPrefix(s, beginning) {
			return true
		}
	}

	for _, part := range r.inside {
		if strings.Contains(s, part) {
			return true
		}
	}

	for _, ending := range r.endings {
		if strings.HasSuffix(s, ending) {
			return true
		}
	}

	return false
}

// rules are asked in this order: the exceptions before the kinds. They never
// change.
var rules = [...]rule{
	{ // advice, and where to read more
		weight: aside,
		beginnings: []string{
			"tipp:", "hinweis:", "zeile ", "astuce ", "détail ", "ligne ", "línea ", "linha ", // of translated tools
			"hint:", "hint ", "detail:", "context:", "where:", "statement:", "query:", "note:", "help:", "tip:",
			"suggestion:",
			"psql: hint:", "psql: detail:", "pg_dump: hint:", "pg_dump: detail:", "pg_restore: hint:",
			"pg_restore: detail:", "line 1: ",
			"run '", "run `", `run "`, "run with ", "see ", "see: ", "try '", "try `", `try "`, "try: ", "use '",
			"use `", `use "`, "use -", "or use ",
			"for more ", "for help", "for details", "for usage", "more info", "learn more", "read more",
			"documentation:", "docs:", "visit ", "info visit",
			"http://", "https://", "please ", "and the repository exists", "did you mean",
			"the most similar command", "is the server running",
			"to ignore this", "to see ", "to get ", "if you ", "you can ", "you may ", "you need to ",
			"a complete log", "curl: try ", "usage:", "usage of ", "* try:",
		},
		inside:  []string{": hint: ", ": detail: ", " for more information", "; pg_dump version: ", "; pg_restore version: "},
		endings: []string{" --help' for help.", " in detached mode"},
	},
	{ // what is no error, and goes on
		weight: aside,
		beginnings: []string{
			"info:", "info ", "debug:", "notice:", "[info]", "[debug]", "[notice]", "warning", "warn:", "warn ",
			"[warn", "w: ", "n: ", "deprecat", "npm warn", "npm notice",
			"pg_restore: warning:", "pg_dump: warning:", "mysql: [warning]", "mysqldump: [warning]",
			"gpg: warning:", "already up to date", "already on '",
			"use of uninitialized value", "useless use of ", "deep recursion on ", "subroutine ", "argument \"",
			"cloning into", "get:", "hit:", "to http", "to ssh://", "to git", "* branch ", "step ", "---> ",
			"removing intermediate container", "reading package lists", "building dependency tree",
			"last message repeated", "pseudo-terminal will not",
			"% total", "dload ", "frame=", "size=", "video:", "ffmpeg version", "ffprobe version", "built with ",
			"configuration:", "libav", "libsw", "libpostproc",
			"stream #", "input #", "output #", "stream mapping", "metadata:", "duration: ", "press [q]", "+ ", "++ ",
		},
		inside:  []string{": warning: ", ": note: ", ": notice: ", ": info: ", "will retry in "},
		endings: []string{": entering directory"},
	},
	{ // where it happened
		weight: aside,
		beginnings: []string{
			"at ", "from /", "in file included from", "from ", "#0 ", "node.js v",
			"npm error code ", "npm error errno ", "npm error syscall ", "npm error path ", "npm error workspace ",
			"npm error location ",
			"npm error command ", "npm error lifecycle script", "npm error a complete log", "npm error signal ",
			"npm err! code ", "npm err! errno ", "npm err! syscall ", "npm err! path ", "npm err! workspace ",
			"npm err! location ",
			"npm err! command ", "npm err! lifecycle script", "npm err! a complete log", "npm err! signal ",
			"npm err! this is probably not a problem", "npm err! there is likely additional",
			"npm err! failed at the ", "npm err! exit status",
			"[error] to see the full stack trace", "[error] re-run maven", "[error] for more information",
			"[error] [help ", "[error] after correcting",
		},
		inside:  []string{": in function ", " called at "},
		endings: []string{" must be returned"},
	},
	{ // the end of a program of which another one said why
		weight: summary,
		beginnings: []string{
			"make: *** [", "gmake: *** [", "make: target ", "ninja: build stopped", "error: recipe ",
			"task: failed to run task", "collect2: error: ld returned", "compilation terminated",
			"build failed", "failure: build failed", "rake aborted!", "bin/rails aborted!", "rails aborted!",
			"command failed with exit", "error command failed with exit", "error: command failed with exit",
			"[error] command failed", "elifecycle", "err_pnpm_recursive_run",
			"exited with", "exit code", "exit status", "process exited", "program exited", "command exited",
			"command terminated with exit", "error: exit status", "error: subprocess-exited-with-error",
			"the command '/bin/sh",
			"error: exit code", "error: process completed with exit", "##[error]process completed with",
			"subprocess.calledprocesserror",
			"sub-process ", "e: sub-process ", "errors were encountered while processing",
		},
		inside: []string{
			"did not run successfully", "]: *** [", "did not complete successfully: exit code",
			"returned a non-zero code",
			"failed with exit code", "failed with exit status", "failed with error code",
			"exited with code", "exited with status", "exited with exit code", "exited with non-zero",
			"returned non-zero exit status", "terminated with exit code",
		},
		endings: []string{"errors generated.", "error generated.", "execution aborted.", "had compilation errors."},
	},
	{ // the end of a tool that said why before
		weight: summary,
		beginnings: []string{
			"fatal: could not read from remote repository", "fatal: the remote end hung up", "fatal: early eof",
			"fatal: index-pack failed", "fatal: fetch-pack: ",
			"error: failed to push some refs", "scp: connection closed", "scp: lost connection", "lost connection",
			"connection closed", "disconnected from ",
			"rsync error:", "rsync: connection unexpectedly closed",
			"tar: child returned", "tar: exiting with failure status", "tar: error is not recoverable",
			"tar: error exit delayed", "tar (child): error is not recoverable",
			"-- configuring incomplete", "conversion failed!", "error splitting the argument list",
			"error parsing options for", "error reinitializing filters", "failed to inject frame",
			"error while processing the decoded data", "error initializing output stream",
			"error opening input files:", "error opening output files:",
			"error opening input file ", "error opening output file ", "could not write header for output file",
			"unable to load certificate", "unable to load key", "unable to load private key",
			"unable to load public key",
			"msmtp: could not send mail",
			"begin failed--compilation aborted", "execution of ", "aborting", "exiting", "abort.", "aborted.",
		},
		endings: []string{"previous errors", "previous error", "previous errors.", ", aborting.", ", exiting."},
	},
	{ // one of many
		weight:     noted,
		beginnings: []string{"upload failed:", "download failed:", "copy failed:", "delete failed:", "move failed:"},
		inside: []string{
			":error:",                                                                                             // the queue of errors of OpenSSL
			"] error while decoding mb ", "] concealing ", "non monotonically increasing dts", "invalid nal unit", // of a film that goes on
		},
	},
	{
		weight: opening,
		beginnings: []string{
			"fehler:", "erreur:", "erreur ", "errore:", "erro:", "fout:", "ошибка:", "错误:", "エラー:", // of translated tools
			"error!", "error:", "error (", "error [", "error[", "error ", "errors:", "error - ", "cmake error",
			"[error]",
			"##[error]", "::error", "err:", "[err]", "e: ",
			"fatal:", "fatal ", "[fatal]", "panic:", "critical:", "[critical]", "failure:", "failed:", "exception:",
			"abort:", "fail: ", "crit: ",
			"an error occurred", "an exception occurred", "uncaught ", "unhandled ", "internal error",
			"syntax error", "parse error", "runtime error",
			"segmentation fault", "out of memory", "killed", "npm error ", "npm err! ", "err_pnpm_", "sqlstate[",
			"make: *** ", "gmake: *** ",
			"! [rejected]", "! [remote rejected]", "✗", "✖", "×", "✘", "❌",
		},
		inside: []string{
			": error ", ": error: ", ": fatal error: ", ": fatal: ", ": syntax error", ": *** ",
		},
	},
}

// troubles are the words of a sentence that tells of trouble. Words that end with "n't"
// belong to them.
var troubles = setOf(`
	abort aborted already bad broken cannot closed conflict corrupt corrupted crash crashed declined denied died duplicate error errors
	exceeded exception exhausted expired fail failed failing fails failure fatal forbidden full illegal impossible incompatible
	incomplete incorrect insufficient interrupted invalid killed lost malformed mismatch missing must needs no not outdated
	panic refused required rejected reset stale supported terminated timed timeout truncated unable unauthorized unavailable unbound undeclared
	undefined unexpected unknown unmatched unreachable unrecognised unrecognized unreadable unresolved unspecified unsupported
	unterminated violates violation without wrong`)

func setOf(words string) map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(words) {
		set[word] = true
	}

	return set
}
