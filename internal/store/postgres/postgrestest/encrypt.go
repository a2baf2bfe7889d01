package postgrestest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Encrypt lets the server offer TLS, with a certificate that only its own authority has signed, and
// returns the address of a database with the parameter sslmode.
func (c *Cluster) Encrypt(database, mode string) (dsn string) {
	c.tb.Helper()

	c.Certify(time.Now().Add(time.Hour))

	return c.encrypted(database) + mode
}

// Certify lets the server offer TLS, with a certificate for its address that ends at a moment, and
// returns the file that clients can name as its authority.
func (c *Cluster) Certify(ends time.Time) (authority string) {
	c.tb.Helper()

	certificate, key := selfSigned(c.tb, ends)
	for name, text := range map[string][]byte{"server.crt": certificate, "server.key": key} {
		path := filepath.Join(c.data(), name)
		check(c.tb, os.WriteFile(path, text, 0o600))

		if c.as.Credential != nil {
			check(c.tb, os.Chown(path, int(c.as.Credential.Uid), int(c.as.Credential.Gid)))
		}
	}

	Query(c.tb, c.DSN("postgres"), `ALTER SYSTEM SET ssl = on`)
	Query(c.tb, c.DSN("postgres"), `SELECT pg_reload_conf()`)
	check(c.tb, answers(c.tb.Context(), c.encrypted("postgres")+"require"))

	return filepath.Join(c.data(), "server.crt")
}

// encrypted is the address of a database, up to the value of sslmode.
func (c *Cluster) encrypted(database string) string {
	return "postgres://postgres@" + c.address + "/" + database + "?sslmode="
}

// selfSigned is a certificate for this machine, and its key.
func selfSigned(tb testing.TB, ends time.Time) (certificate, key []byte) {
	tb.Helper()

	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(tb, err)

	of := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: ends, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	signed, err := x509.CreateCertificate(rand.Reader, of, of, private.Public(), private)
	check(tb, err)
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	check(tb, err)

	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})
}
