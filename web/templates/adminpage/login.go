package adminpage

import (
	"redrive/web/templates"
)

// Login is the page /login.
type Login struct {
	templates.Frame
	Next    string // the page here to which it leads
	Name    string // as it was typed before
	Problem string // why it was not accepted
	NoUsers bool   // nobody can log in yet
}
