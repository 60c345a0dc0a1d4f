package posthorn

// Act is something that a member asks to do.
type Act string

const (
	ActSend    Act = "send"
	ActAdd     Act = "add"
	ActRemove  Act = "remove"
	ActLeave   Act = "leave"
	ActMembers Act = "members" // see the list of members
	ActMeta    Act = "meta"    // change the title
)

// Rule is one line of the authorisation table: in conversations of Kind, Act is open to Roles; others get Code.
// Somebody who is no member gets NOT_MEMBER before the table is asked; a server key is not asked at all.
type Rule struct {
	Kind  ConvKind
	Act   Act
	Roles []Role
	Code  Code
}

// Rules is the authorisation table. docs/authorization.md is generated from it, and the batch function of the store
// gets it as data, so that there is one place where it is written.
func Rules() []Rule {
	all := []Role{RoleOwner, RoleAdmin, RoleMember}
	admins := []Role{RoleOwner, RoleAdmin}
	return []Rule{
		{Direct, ActSend, all, CodeForbidden},
		{Direct, ActAdd, nil, CodeForbidden},
		{Direct, ActRemove, nil, CodeForbidden},
		{Direct, ActLeave, nil, CodeForbidden},
		{Direct, ActMembers, all, CodeForbidden},
		{Direct, ActMeta, nil, CodeForbidden},
		{Group, ActSend, all, CodeForbidden},
		{Group, ActAdd, admins, CodeForbidden},
		{Group, ActRemove, admins, CodeForbidden},
		{Group, ActLeave, all, CodeForbidden},
		{Group, ActMembers, all, CodeForbidden},
		{Group, ActMeta, admins, CodeForbidden},
		{Channel, ActSend, admins, CodeForbidden},
		{Channel, ActAdd, admins, CodeForbidden},
		{Channel, ActRemove, admins, CodeForbidden},
		{Channel, ActLeave, all, CodeForbidden},
		{Channel, ActMembers, admins, CodeForbidden},
		{Channel, ActMeta, admins, CodeForbidden},
	}
}

// Allowed tells whether a member with this role may do act in a conversation of this kind.
func Allowed(kind ConvKind, act Act, role Role) bool {
	for _, r := range Rules() {
		if r.Kind != kind || r.Act != act {
			continue
		}
		for _, x := range r.Roles {
			if x == role {
				return true
			}
		}
	}
	return false
}
