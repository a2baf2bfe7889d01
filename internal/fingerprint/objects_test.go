package fingerprint

import (
	"strings"
	"testing"
)

// The objects of two jobs are one cause, however a language prints them; what their fields
// say of the error is not.
func TestOf_ObjectsAreValues(t *testing.T) {
	for _, alike := range [][]string{
		{"undefined method `status_active?' for #<User id: 7, name: \"Ana\", bio: nil, admin: false, created_at: \"2023-06-29 12:10:22.0 +0000\">",
			"undefined method `status_active?' for #<User id: 88, name: \"Bo, Li\", bio: \"Hi, I'm Bo\", admin: true, created_at: nil>"},
		{"bad #<Order:0x000071c2 @id=7, @total=nil, @lines=[1, 2]>", "bad #<Order:0x00007fff @id=8, @total=12.5, @lines=[]>"},
		{"cannot save User(id=7, name='Ana', admin=True, bio=None)", "cannot save User(id=12, name='Bo (Li)', admin=False, bio='x')"},
		{"cannot save User{id=7, name='Ana', admin=true}", "cannot save User{id=8, name='Bo', admin=false}"},
		{"cannot save User[id=7, admin=true, name=Ana Lee]", "cannot save User[id=8, admin=false, name=null]"},
		{"bad job {ID:7 Name:Ana Lee Admin:false Bio:<nil>}", "bad job {ID:8 Name:Bo Admin:true Bio:0xc000012345}"},
		{"bad labels map[city:Rome paid:true]", "bad labels map[city:Los Angeles paid:false]"},
		{"called on User { id: 7, bio: None, tags: Some(3) }", "called on User { id: 8, bio: Some(\"x\"), tags: None }"},
		{"bad value %User{id: 7, bio: nil, admin: true}", "bad value %User{id: 8, bio: \"x\", admin: false}"},
		{"bad options [id: 7, paid: true]", "bad options [id: 8, paid: nil]"},
		{"bad row {:id=>7, \"bio\"=>nil}", "bad row {:id=>8, \"bio\"=>\"x\"}"},
		{`rejected: {"id":7,"paid":true,"note":null}`, `rejected: {"id":8,"paid":false,"note":"x"}`},
		{`Declined { card: 7, reason: "limit" }`, `Declined { card: 8, reason: "stolen" }`},
		{"cannot bill { id: 7, paid: true, to: undefined }", "cannot bill { id: 8, paid: false, to: 'x' }"},
	} {
		a, b := Of("t", "c", alike[0], ""), Of("t", "c", alike[1], "")
		if a.Fingerprint != b.Fingerprint {
			t.Errorf("told apart:\n%q\n%q\n%q", alike[0], a.Message, b.Message)
		}
	}

	for _, apart := range [][]string{
		{"undefined method `a' for #<User id: 7>", "undefined method `a' for #<Order id: 7>"},
		{"no answer { code: 'ECONNREFUSED', errno: -111 }", "no answer { code: 'ETIMEDOUT', errno: -110 }"},
		{"no row { code: 'P2002', meta: 1 }", "no row { code: 'P2025', meta: 1 }"},
		{`Declined { reason: "the card is expired, cannot charge" }`, `Declined { reason: "the account is unknown here" }`},
		{"cannot send (%Mint.TransportError{reason: :timeout})", "cannot send (%Mint.TransportError{reason: :econnrefused})"},
		{`refused: {"error":"no such user here"}`, `refused: {"error":"the card is expired"}`},
		{"{:error, :timeout}", "{:error, :nxdomain}"},
		{"cannot save User(id=7)", "cannot save Order(id=7)"},
	} {
		a, b := Of("t", "c", apart[0], ""), Of("t", "c", apart[1], "")
		if a.Fingerprint == b.Fingerprint {
			t.Errorf("one cause:\n%q\n%q\n%q", apart[0], apart[1], a.Message)
		}
	}
}

// What begins as an object and is none is left as it is.
func TestNormalise_LeavesBracketsAlone(t *testing.T) {
	for message, want := range map[string]string{
		"[error: no such queue]":         "[error: no such queue]",
		"f(x) = {a} [b] <c>":             "f(x) = {a} [b] <c>",
		"call(queue: orders":             "call(‹text›", // cut off
		"#<Net::HTTPNotFound 404 Gone>":  "#<Net::HTTPNotFound 404 Gone>",
		"see {https://a.test/x} (a=b c)": "see {‹url›} (a=b c)",
	} {
		if got := Normalise(message); got != want {
			t.Errorf("%q becomes %q, want %q", message, got, want)
		}
	}
}

// A message of brackets takes no longer than any other.
func TestNormalise_BracketsAreCheap(t *testing.T) {
	n := scanner{in: strings.Repeat("{a:", maxInput/3), close: -1}
	n.all()
	if n.tried > maxTried {
		t.Errorf("%d brackets were read as objects, want at most %d", n.tried, maxTried)
	}
}

// A predicate, a setter and an operator are names of methods.
func TestOf_MethodsOfRubyAreTold(t *testing.T) {
	seen := map[string]string{}
	for _, message := range []string{
		"undefined method `in_group?' for nil:NilClass", "undefined method `paid?' for nil:NilClass", "undefined method `[]' for nil:NilClass",
		"undefined method `+' for nil:NilClass", "undefined method 'save!' for nil", "undefined method 'name=' for an instance of Order",
		"undefined method 'total=' for an instance of Order", "undefined method `<=>' for nil", "undefined method `[]=' for nil",
	} {
		c := Of("t", "NoMethodError", message, "")
		if before, ok := seen[c.Fingerprint]; ok {
			t.Errorf("one cause: %q and %q: %q", before, message, c.Message)
		}
		seen[c.Fingerprint] = message
	}

	old, now := Of("t", "c", "undefined method `paid?' for nil:NilClass", ""), Of("t", "c", "undefined method 'paid?' for nil", "")
	if old.Fingerprint != now.Fingerprint {
		t.Errorf("a newer Ruby makes another cause: %q and %q", old.Message, now.Message)
	}
}

// A database says in the language of its server what went wrong; its state and the names
// in its message are the same.
func TestOf_TranslationsOfADatabaseAreOneCause(t *testing.T) {
	for _, alike := range [][]string{
		{`SQLSTATE[23505]: Unique violation: 7 ERROR:  duplicate key value violates unique constraint "users_email_key"`,
			`SQLSTATE[23505]: Unique violation: 7 FEHLER:  doppelter Schlüsselwert verletzt Unique-Constraint »users_email_key«`},
		{`ERROR: duplicate key value violates unique constraint "users_email_key" (SQLSTATE 23505)`,
			`ERREUR: la valeur d'une clé dupliquée rompt la contrainte unique « users_email_key » (SQLSTATE 23505)`},
		{`SQLSTATE[42S02]: Base table or view not found: 1146 Table 'shop.feeds' doesn't exist`,
			`SQLSTATE[42S02]: Base table or view not found: 1146 Tabelle 'shop.feeds' existiert nicht`},
	} {
		a, b := Of("t", "c", alike[0], ""), Of("t", "c", alike[1], "")
		if a.Fingerprint != b.Fingerprint {
			t.Errorf("told apart:\n%q\n%q", a.Message, b.Message)
		}
	}

	for _, apart := range [][]string{
		{`SQLSTATE[23505]: Unique violation: 7 ERROR:  duplicate key value violates unique constraint "users_email_key"`,
			`SQLSTATE[23505]: Unique violation: 7 ERROR:  duplicate key value violates unique constraint "u2"`},
		{`SQLSTATE[42S22]: Column not found: 1054 Unknown column 'vat' in 'field list'`, `SQLSTATE[42S22]: Column not found: 1054 Unknown column 'iban' in 'field list'`},
		{"SQLSTATE[HY000] [2002] Connection refused", "SQLSTATE[HY000] [2002] Connection timed out"},
		{"SQLSTATE[HY000] [1045] Access denied for user 'a'@'b'", "SQLSTATE[HY000] [2002] Connection refused"},
	} {
		a, b := Of("t", "c", apart[0], ""), Of("t", "c", apart[1], "")
		if a.Fingerprint == b.Fingerprint {
			t.Errorf("one cause:\n%q\n%q", apart[0], apart[1])
		}
	}
}
