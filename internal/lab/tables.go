package lab

import (
	"context"
	"sort"

	"github.com/jackc/pgx/v5"
)

// Row is an event as the table holds it.
type Row struct {
	Conv   string
	Seq    int64
	Kind   string
	Mid    string
	Sender string
	Cmid   string
	Reply  int64
}

// Stay is one period of a member, To 0 while it lasts. SeesFrom is what the join allowed to be seen.
type Stay struct {
	Conv, User         string
	From, To, SeesFrom int64
}

// Position is a device's stored cursor.
type Position struct {
	Device, Conv    string
	Epoch, Install  int64
	Start, Delivery int64
}

// Tables is what the database holds, in one snapshot. The heads are the product's own word, so that they can be judged.
type Tables struct {
	Rows   []Row // by conversation and seq
	Stays  []Stay
	Places []Position
	Heads  map[string]int64
	Floors map[string]int64
	Epoch  int64
}

// tables reads everything. The lab's databases are small.
func (d *database) tables(ctx context.Context) (*Tables, error) {
	t := &Tables{Heads: map[string]int64{}, Floors: map[string]int64{}}
	return t, pgx.BeginTxFunc(ctx, d.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		var r Row
		err := each(ctx, tx, `select conv_id, seq, kind, mid::text, sender, cmid, coalesce(reply_to, 0) from posthorn.events order by conv_id, seq`,
			[]any{&r.Conv, &r.Seq, &r.Kind, &r.Mid, &r.Sender, &r.Cmid, &r.Reply}, func() { t.Rows = append(t.Rows, r) })
		if err == nil {
			err = tx.QueryRow(ctx, `select epoch from posthorn.sequence_space`).Scan(&t.Epoch)
		}
		if err != nil {
			return err
		}
		var s Stay
		err = each(ctx, tx, `select conv_id, user_id, from_seq, coalesce(to_seq, 0), sees_from from posthorn.memberships order by 1, 2, 3`,
			[]any{&s.Conv, &s.User, &s.From, &s.To, &s.SeesFrom}, func() { t.Stays = append(t.Stays, s) })
		if err != nil {
			return err
		}
		var p Position
		err = each(ctx, tx, `select d.user_id || '/' || d.device_name, c.conv_id, c.epoch, c.install_epoch, c.start_seq, c.delivered_seq
  from posthorn.device_cursors c join posthorn.devices d using (device_id) order by 1, 2`,
			[]any{&p.Device, &p.Conv, &p.Epoch, &p.Install, &p.Start, &p.Delivery}, func() { t.Places = append(t.Places, p) })
		if err != nil {
			return err
		}
		var conv string
		var head, floor int64
		return each(ctx, tx, `select h.conv_id, h.head, c.floor_seq from posthorn.conversation_heads h join posthorn.conversations c using (conv_id)`,
			[]any{&conv, &head, &floor}, func() { t.Heads[conv], t.Floors[conv] = head, floor })
	})
}

func each(ctx context.Context, tx pgx.Tx, query string, into []any, row func()) error {
	rows, err := tx.Query(ctx, query)
	if err != nil {
		return err
	}
	_, err = pgx.ForEachRow(rows, into, func() error { row(); return nil })
	return err
}

// speaksOf tells whether what a client was told in an epoch is about the sequence space that the tables hold.
func (t *Tables) speaksOf(epoch int64) bool { return epoch == 0 || t.Epoch == 0 || epoch == t.Epoch }

// row finds an event.
func (t *Tables) row(conv string, seq int64) *Row {
	i := sort.Search(len(t.Rows), func(i int) bool {
		r := &t.Rows[i]
		return r.Conv > conv || r.Conv == conv && r.Seq >= seq
	})
	if i < len(t.Rows) && t.Rows[i].Conv == conv && t.Rows[i].Seq == seq {
		return &t.Rows[i]
	}
	return nil
}

// keyed counts the events of a sender's cmid.
func (t *Tables) keyed(sender, cmid string) (found []Row) {
	for _, r := range t.Rows {
		if r.Sender == sender && r.Cmid == cmid {
			found = append(found, r)
		}
	}
	return found
}

// sees tells whether a user may see an event.
func (t *Tables) sees(user, conv string, seq int64) bool {
	for _, s := range t.Stays {
		if s.User == user && s.Conv == conv && seq >= min(s.From, s.SeesFrom) && (s.To == 0 || seq <= s.To) {
			return true
		}
	}
	return false
}

// visible lists the events of a conversation in (after, upto] that a user may see.
func (t *Tables) visible(user, conv string, after, upto int64) (seqs []int64) {
	for _, r := range t.Rows {
		if r.Conv == conv && r.Seq > after && r.Seq <= upto && t.sees(user, conv, r.Seq) {
			seqs = append(seqs, r.Seq)
		}
	}
	return seqs
}

// head is the newest event that a user may see.
func (t *Tables) head(user, conv string) (head int64) {
	for _, r := range t.Rows {
		if r.Conv == conv && t.sees(user, conv, r.Seq) {
			head = r.Seq
		}
	}
	return head
}

// place finds a device's cursor.
func (t *Tables) place(device, conv string) *Position {
	for i := range t.Places {
		if p := &t.Places[i]; p.Device == device && p.Conv == conv {
			return p
		}
	}
	return nil
}

// convs lists the conversations that hold events.
func (t *Tables) convs() (all []string) {
	for _, r := range t.Rows {
		if len(all) == 0 || all[len(all)-1] != r.Conv {
			all = append(all, r.Conv)
		}
	}
	return all
}
