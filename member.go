package posthorn

// Role is what a member may do; see Allowed.
type Role string

const (
	RoleOwner  Role = "owner" // opened the conversation
	RoleAdmin  Role = "admin"
	RoleMember Role = "member"
)

func (r Role) admin() bool { return r == RoleOwner || r == RoleAdmin }

// Period is one stay of a user in a conversation, from the join event to the leave event, both included.
type Period struct {
	From     int64
	To       int64 // 0 while the stay lasts
	SeesFrom int64 // From, or lower where the history before the join was shown at the join
	Role     Role
}

// Periods are the stays of one user in one conversation, oldest first. They decide V1.
type Periods []Period

// Sees tells whether seq lies within what the user may see.
func (ps Periods) Sees(seq int64) bool {
	for _, p := range ps {
		if seq >= min(p.From, p.SeesFrom) && (p.To == 0 || seq <= p.To) {
			return true
		}
	}
	return false
}

// Present tells whether the user is a member now.
func (ps Periods) Present() bool { return len(ps) > 0 && ps[len(ps)-1].To == 0 }

// Role is the role in the newest stay.
func (ps Periods) Role() Role {
	if len(ps) == 0 {
		return ""
	}
	return ps[len(ps)-1].Role
}

// Bound is the highest seq that the user may see where the log ends at head: a former member's is their leave event.
// In a channel the newest visible event may lie lower, see VisibleIn.
func (ps Periods) Bound(head int64) int64 {
	if len(ps) == 0 {
		return 0
	}
	if last := ps[len(ps)-1]; last.To != 0 {
		return min(last.To, head)
	}
	return head
}

// Prev is the highest seq below seq that lies within the periods, or 0. It ignores what a channel hides.
func (ps Periods) Prev(seq int64) int64 {
	var prev int64
	for _, p := range ps {
		if min(p.From, p.SeesFrom) >= seq {
			continue
		}
		top := seq - 1
		if p.To != 0 {
			top = min(top, p.To)
		}
		prev = max(prev, top)
	}
	return prev
}
