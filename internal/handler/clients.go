package handler

import (
	"crypto/sha256"
	"crypto/tls"
	"maps"
	"slices"
	"sync"

	"redrive/internal/httpclient"
)

// idleConnections are kept to each service for the next request.
const idleConnections = 128

// clients call the services. One configuration has them in common with the next, so that what
// did not change goes on with its connections. They can be used by many goroutines.
type clients struct {
	plain *httpclient.Client // of services without certificates of their own

	mutex   sync.Mutex
	secured map[certificates]*httpclient.Client
}

// certificates tell apart whom a client trusts and as whom it comes.
type certificates [sha256.Size]byte

func newClients() *clients {
	return &clients{plain: httpclient.New(idleConnections, nil), secured: map[certificates]*httpclient.Client{}}
}

// of returns the client with these certificates, and makes it if there is none.
func (c *clients) of(id certificates, secure *tls.Config) *httpclient.Client {
	c.mutex.Lock()
	defer c.mutex.Unlock()

	client, ok := c.secured[id]
	if !ok {
		client = httpclient.New(idleConnections, secure)
		c.secured[id] = client
	}

	return client
}

// keep closes the clients that none of these sets uses. A job of an earlier configuration can
// still run with one: its request goes on, and then its connection is closed.
func (c *clients) keep(sets ...*Set) {
	var gone []*httpclient.Client

	c.mutex.Lock()
	for id, client := range c.secured {
		if !slices.ContainsFunc(sets, func(s *Set) bool { return s.secured[id] }) {
			gone = append(gone, client)
			delete(c.secured, id)
		}
	}
	c.mutex.Unlock()

	for _, client := range gone {
		client.Close()
	}
}

// all are the clients that are open.
func (c *clients) all() []*httpclient.Client {
	c.mutex.Lock()
	defer c.mutex.Unlock()

	return append(slices.Collect(maps.Values(c.secured)), c.plain)
}
