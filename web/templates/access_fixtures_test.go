package templates_test

import (
	"time"

	"redrive/internal/access"
	"redrive/web/templates"
	"redrive/web/templates/adminpage"
)

// accessStates are the states of the page /access.
func accessStates(all map[string]page) {
	f := frame("access", "Access")
	f.User, f.Role, f.LogOut = "ana", access.Admin, true
	own := access.Session{Hash: []byte("own"), User: "ana", Role: access.Admin, Created: now.Add(-time.Hour), Seen: now.Add(-5 * time.Second), Address: "10.4.0.17"}
	v := adminpage.Access{
		Frame: f, Own: own.ID(),
		Users: []access.User{
			{Name: "ana", Role: access.Admin, Created: now.Add(-40 * 24 * time.Hour), Changed: now.Add(-40 * 24 * time.Hour), LoggedIn: own.Created},
			{Name: "ben", Role: access.Operator, Created: now.Add(-20 * 24 * time.Hour), Changed: now.Add(-2 * time.Hour), LoggedIn: now.Add(-26 * time.Hour)},
			{Name: "chen", Role: access.Viewer, Created: now.Add(-time.Hour), Changed: now.Add(-time.Hour)},
		},
		Sessions: []access.Session{own, {Hash: []byte("other"), User: "ben", Role: access.Operator, Created: now.Add(-26 * time.Hour), Seen: now.Add(-2 * time.Hour), Address: "2001:db8::7"}},
		Tokens: []access.Token{
			{ID: "rgzzzfzkeq", Name: "shop", Role: access.Producer, Created: now.Add(-24 * time.Hour), CreatedBy: "ana", Expires: now.Add(89 * 24 * time.Hour), Used: now.Add(-3 * time.Second)},
			{ID: "x3qncgop2m", Name: "grafana", Role: access.Viewer, Created: now.Add(-88 * 24 * time.Hour), CreatedBy: "command line", Expires: now.Add(2 * 24 * time.Hour)},
			{ID: "6rzbeqdgmq", Name: "old", Role: access.Operator, Created: now.Add(-9 * 24 * time.Hour), CreatedBy: "ana", Expires: now.Add(-2 * 24 * time.Hour)},
			{ID: "aaaaaaaaaa", Name: "lost", Role: access.Admin, Created: now.Add(-9 * 24 * time.Hour), CreatedBy: "ana", Expires: now.Add(80 * 24 * time.Hour), Revoked: now.Add(-time.Hour)},
		},
	}
	all["access"] = v
	v.Made, v.Secret = "ci", "redrive_rgzzzfzkeq_BhFrENkIpZxxw3NWI7hx_v6YlC6PB9UVriC818BQ0JE"
	all["access-token"] = v
	v.Made, v.Secret = "", ""
	v.Problem, v.Field, v.Name, v.Role = "the user ben exists already", "name", "ben", access.Operator
	all["access-refused"] = v
	all["access-open"] = adminpage.Access{Frame: fresh("access", "Access"), Open: true}
	all["access-proxied"] = adminpage.Access{Frame: fresh("access", "Access"), Proxied: true}
}

// poisonedAccess shows a text wherever one can come from.
func poisonedAccess(f templates.Frame, s string) adminpage.Access {
	f.User, f.Role, f.LogOut = s, access.Role(s), true
	return adminpage.Access{
		Frame: f, Users: []access.User{{Name: s, Role: access.Role(s)}, {Name: "x", Role: access.Admin}},
		Sessions: []access.Session{{User: s, Role: access.Role(s), Address: s}},
		Tokens:   []access.Token{{ID: s, Name: s, Role: access.Role(s), CreatedBy: s, Expires: now.Add(time.Hour)}},
		Problem:  s, Field: "name", Name: s, Role: access.Role(s), Made: s, Secret: "secret",
	}
}
