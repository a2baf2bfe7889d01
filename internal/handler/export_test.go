package handler

import (
	"slices"

	"redrive/internal/httpclient"
)

// Secured are the clients of services with certificates of their own that are open.
func (s *Set) Secured() (all []*httpclient.Client) {
	return slices.DeleteFunc(s.clients.all(), func(c *httpclient.Client) bool { return c == s.clients.plain })
}
