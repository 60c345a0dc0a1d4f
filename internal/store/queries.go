package store

// The statements that Go sends. Those of the write path are functions in migrations/*.sql; TestEveryStatementPrepares
// holds all of them to the schema.
const (
	checkSQL = `select current_setting('fsync'), current_setting('synchronous_commit'), current_setting('server_encoding'),
       current_setting('default_transaction_isolation')`

	// Whether the schema and the rules are those of this program.
	migratedSQL = `select v.version, not exists (
    (select r.kind, r.act, r.role from posthorn.rules r except select * from unnest($1::text[], $2::text[], $3::text[]))
    union all (select * from unnest($1::text[], $2::text[], $3::text[]) except select r.kind, r.act, r.role from posthorn.rules r))
  from posthorn.schema_version v`

	lockSQL = `select pg_advisory_lock($1)`

	putRulesSQL = `with want as (select * from unnest($1::text[], $2::text[], $3::text[]) w (kind, act, role)),
  gone as (delete from posthorn.rules r where (r.kind, r.act, r.role) not in (select w.kind, w.act, w.role from want w))
insert into posthorn.rules select * from want on conflict do nothing`

	setChannelSQL = `insert into posthorn.settings (name, value) values ('channel', $1)
    on conflict (name) do update set value = excluded.value where posthorn.settings.value <> excluded.value`

	sendBatchSQL = `select pid, tx, epoch, codes, seqs, mids, ats, msg_nos
  from posthorn.send_batch($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`

	changeSQL = `select pid, tx, epoch, code, why, seq, prev, mid::text, at, msg_no, users, data
  from posthorn.change($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)`

	openSQL = `select tx, code, why, conv, head, mid::text, at, users, data
  from posthorn.open($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`

	// One statement, so that the snapshot, what it is valid for, and the rows belong together. tx >= xmax(last): began
	// after the last look; tx in xip(last): ran then, and is visible now that it has committed. behind: transaction ids have
	// been taken back; trimmed: rows that had not been read may be gone.
	tailSQL = `with here as materialized (
    select pg_current_snapshot() as snapshot, (select b.nonce::text from posthorn.boot b) as mark, ss.epoch, posthorn.timeline() as timeline,
           coalesce((select g.beat from posthorn.gateways g where g.gateway_id = $2), 0) as beat,
           pg_snapshot_xmax(pg_current_snapshot()) < pg_snapshot_xmax($1::text::pg_snapshot) as behind,
           pg_snapshot_xmin($1::text::pg_snapshot) < ss.trimmed_through as trimmed,
           current_setting('transaction_read_only') = 'on' as read_only
      from posthorn.sequence_space ss)
select h.snapshot::text, coalesce(h.mark, ''), h.epoch, coalesce(h.timeline, ''), h.beat, coalesce(h.behind, false), coalesce(h.trimmed, false), h.read_only,
       t.source, t.origin, t.batch, t.convs, t.first_seq, t.last_seq, t.users, t.key, t.payload
  from here h left join lateral (
    select 'commit' as source, c.origin, c.batch, c.convs, c.first_seq, c.last_seq, c.users, null as key, null as payload
      from posthorn.event_commits c where c.tx >= pg_snapshot_xmax($1::text::pg_snapshot)
    union all
    select 'commit', c.origin, c.batch, c.convs, c.first_seq, c.last_seq, c.users, null, null
      from posthorn.event_commits c where c.tx = any (array(select pg_snapshot_xip($1::text::pg_snapshot)))
    union all
    select g.kind, null, null, null, null, null, null, g.key, g.payload
      from posthorn.signals g where g.tx >= pg_snapshot_xmax($1::text::pg_snapshot)
    union all
    select g.kind, null, null, null, null, null, null, g.key, g.payload
      from posthorn.signals g where g.tx = any (array(select pg_snapshot_xip($1::text::pg_snapshot)))
  ) t on true
 order by t.first_seq`

	// How much of what this gateway has seen is here. A batch below trimmed_through was there long enough.
	factsSQL = `select ss.space_id::text, ss.epoch, (select c.system_identifier from pg_control_system() c), ss.timeline, posthorn.timeline(),
       (select count(*) from unnest($1::text[], $2::bigint[], $3::text[]) w (conv, seq, mid)
         where not exists (select 1 from posthorn.events e where e.conv_id = w.conv and e.seq = w.seq and e.mid::text = w.mid)),
       (select count(*) from unnest($4::text[], $5::text[], $6::bigint[]) b (tx, origin, batch)
         where b.tx::xid8 >= ss.trimmed_through
           and not exists (select 1 from posthorn.event_commits c where c.tx = b.tx::xid8 and c.origin = b.origin and c.batch = b.batch))
  from posthorn.sequence_space ss`

	shorterSQL = `select count(*) from unnest($1::text[], $2::bigint[]) h (conv, seq) where coalesce(posthorn.head(h.conv), 0) < h.seq`

	settleSQL = `select state, epoch, renewed from posthorn.settle($1, $2, $3, $4, $5, $6, $7::text::interval)`

	// Asked on each new connection, before anything is known of it.
	primarySQL = `select (select c.system_identifier from pg_control_system() c)::text,
       case when not pg_is_in_recovery() then substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) else '' end`

	adoptSQL = `select posthorn.adopt()`

	enlistSQL = `select posthorn.enlist($1, $2, $3::text::interval)`

	beatSQL = `select posthorn.beat($1, $2, $3::text::interval)`

	leaveSQL = `delete from posthorn.gateways where gateway_id = $1`

	// In the transaction of what it guards, and where a statement found nothing: then its own guard may not have been run.
	guardSQL = `select epoch from posthorn.hold($1, $2, $3, $4)`

	trimSQL = `select posthorn.trim($1::text::interval, $2::text::interval)::text`

	// Devices whose connection here is not the newest, or that may have none.
	routesSQL = `select i.device, coalesce(r.generation, 0), d.revoked_at is not null
  from unnest($1::bigint[], $2::bigint[]) i (device, generation)
  join posthorn.devices d on d.device_id = i.device
  left join posthorn.device_routes r on r.device_id = i.device
 where r.generation > i.generation or d.revoked_at is not null`

	notifySQL = `select pg_notification_queue_usage() from pg_notify($1, $2)`

	// What was committed by transactions that ran or began since an earlier reading, whatever the tail made of them.
	auditSQL = `with here as materialized (select pg_current_snapshot()::text as snapshot)
select h.snapshot, t.conv, t.first_seq, t.last_seq, posthorn.head(t.conv), t.present
  from here h left join lateral (
    select u.conv, u.first_seq, u.last_seq, array(
           select m.user_id from posthorn.memberships m where m.conv_id = u.conv and m.user_id = any (c.users) and m.to_seq is null) as present
      from posthorn.event_commits c cross join lateral unnest(c.convs, c.first_seq, c.last_seq) u (conv, first_seq, last_seq)
     where c.tx >= pg_snapshot_xmin($1::text::pg_snapshot)) t on true`

	claimsSQL = `select i.conv, i.device, i.install, i.head, dc.delivered_seq
  from unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[]) i (conv, device, install, head)
  join posthorn.device_cursors dc on dc.conv_id = i.conv and dc.device_id = i.device and dc.install_epoch = i.install
  join posthorn.sequence_space s on s.epoch = dc.epoch`

	putBootSQL = `insert into posthorn.boot default values on conflict do nothing`

	headsSQL = `select c, posthorn.head(c) from unnest($1::text[]) c where posthorn.head(c) is not null`

	// Who is a member now, and since which event.
	presentSQL = `select m.conv_id, m.user_id, m.from_seq from posthorn.memberships m where m.user_id = any ($1) and m.to_seq is null`

	eventColumns = `e.conv_id, e.seq, e.kind, e.mid::text, e.sender, e.device_id is null, e.cmid, e.body, e.data,
       coalesce(e.reply_to, 0), coalesce(e.target, 0), e.users, e.msg_no, e.at`

	rangesSQL = `select ` + eventColumns + `
  from unnest($1::text[], $2::bigint[], $3::bigint[]) r (conv, lo, hi)
  cross join lateral (select * from posthorn.events e where e.conv_id = r.conv and e.seq between r.lo and r.hi) e
 order by e.conv_id, e.seq`

	// The periods of a user, who follows, in conversation c, as four arrays; see periodColumns.
	periodsOf = `select array_agg(m.from_seq order by m.from_seq) as froms, array_agg(coalesce(m.to_seq, 0) order by m.from_seq) as tos,
           array_agg(m.sees_from order by m.from_seq) as sees, array_agg(m.role order by m.from_seq) as roles
      from posthorn.memberships m where m.conv_id = c.conv_id and m.user_id = `

	// What a viewer may see of a conversation, in one snapshot; at last whether the device has a newer install.
	viewSQL = `select c.kind, c.title, c.floor_seq, s.epoch, posthorn.head(c.conv_id),
       p.froms, p.tos, p.sees, p.roles,
       case when p.froms is null then 0 else
           posthorn.visible_head(c.conv_id, c.kind, $2, nullif(p.tos[cardinality(p.tos)], 0), p.roles[cardinality(p.roles)], posthorn.head(c.conv_id)) end,
       dc.conv_id is not null, coalesce(dc.start_seq, 0), coalesce(dc.delivered_seq, 0),
       $3 <> 0 and not exists (select 1 from posthorn.devices d where d.device_id = $3 and d.install_epoch = $4)
  from posthorn.conversations c
  cross join posthorn.space($5, $6, $7, $8) s
  left join lateral (
    ` + periodsOf + `$2) p on true
  left join posthorn.device_cursors dc
    on dc.conv_id = c.conv_id and dc.device_id = $3 and dc.install_epoch = $4 and dc.epoch = s.epoch
 where c.conv_id = $1`

	// The visible events above $2 and up to $3, at most $4 of them and about $5 bytes, but at least one. octet_length of
	// a stored text does not unpack it. $6: everything, or the user whose membership events are shown in a channel.
	forwardSQL = `select ` + eventColumns + ` from (
    select x.*, sum(coalesce(octet_length(x.body), 0) + coalesce(octet_length(x.data), 0) + 400) over (order by x.seq) as run,
           row_number() over (order by x.seq) as n
      from (select * from posthorn.events e
             where e.conv_id = $1 and e.seq > $2 and e.seq <= $3
               and exists (select 1 from unnest($7::bigint[], $8::bigint[]) r (lo, hi) where e.seq between r.lo and r.hi)
               and ($6::text is null or e.kind not in ('join', 'leave') or $6 = any (e.users))
             order by e.seq limit $4) x) e
  cross join posthorn.space($9, $10, $11, $12) s
 where e.run <= $5 or e.n = 1 order by e.seq`

	backwardSQL = `select ` + eventColumns + ` from (
    select x.*, sum(coalesce(octet_length(x.body), 0) + coalesce(octet_length(x.data), 0) + 400) over (order by x.seq desc) as run,
           row_number() over (order by x.seq desc) as n
      from (select * from posthorn.events e
             where e.conv_id = $1 and e.seq > $2 and e.seq <= $3
               and exists (select 1 from unnest($7::bigint[], $8::bigint[]) r (lo, hi) where e.seq between r.lo and r.hi)
               and ($6::text is null or e.kind not in ('join', 'leave') or $6 = any (e.users))
             order by e.seq desc limit $4) x) e
  cross join posthorn.space($9, $10, $11, $12) s
 where e.run <= $5 or e.n = 1 order by e.seq desc`

	markStartSQL = `select m.start_seq, m.delivered_seq from posthorn.hold($5, $6, $7, $8) s cross join posthorn.mark_start($1, $2, $3, $4) m`

	// The seq of the $4th newest visible event, or of the oldest there is.
	tailStartSQL = `select min(x.seq) from (
    select e.seq from posthorn.events e
     where e.conv_id = $1 and e.seq >= $2 and e.seq <= $3
       and exists (select 1 from unnest($6::bigint[], $7::bigint[]) r (lo, hi) where e.seq between r.lo and r.hi)
       and ($5::text is null or e.kind not in ('join', 'leave') or $5 = any (e.users))
     order by e.seq desc limit $4) x`

	// The conversations of a user after $2, with everything that an entry says but unread. $5: only what changed since.
	listSQL = `select c.conv_id, c.kind, c.title, c.floor_seq, s.epoch, posthorn.head(c.conv_id),
       p.froms, p.tos, p.sees, p.roles, v.vhead,
       coalesce(dc.start_seq, 0), coalesce(dc.delivered_seq, 0),
       greatest(coalesce(rc.read_seq, 0), coalesce(own.seq, 0)), coalesce(rc.rv, 0), pg_current_snapshot()::text
  from (select distinct m.conv_id from posthorn.memberships m
         where m.user_id = $1 and m.conv_id > $2 and ($6::text is null or m.conv_id = $6)) mine
  join posthorn.conversations c on c.conv_id = mine.conv_id
  cross join posthorn.space($8, $9, $10, $11) s
  cross join lateral (
    ` + periodsOf + `$1) p
  cross join lateral (select posthorn.visible_head(c.conv_id, c.kind, $1, nullif(p.tos[cardinality(p.tos)], 0),
           p.roles[cardinality(p.roles)], posthorn.head(c.conv_id)) as vhead) v
  left join posthorn.device_cursors dc
    on dc.conv_id = c.conv_id and dc.device_id = $3 and dc.install_epoch = $4 and dc.epoch = s.epoch
  left join posthorn.read_cursors rc on rc.conv_id = c.conv_id and rc.user_id = $1 and rc.epoch = s.epoch
  left join lateral (select e.seq from posthorn.events e
         where e.conv_id = c.conv_id and e.sender = $1 and e.device_id is not null order by e.seq desc limit 1) own on true
 where (p.tos[cardinality(p.tos)] = 0 or ($3::bigint is not null and coalesce(dc.delivered_seq, 0) < v.vhead))
   and ($5::text is null or c.conv_id in (
        select unnest(ec.convs) from posthorn.event_commits ec where ec.tx >= pg_snapshot_xmax($5::text::pg_snapshot)
        union all
        select unnest(ec.convs) from posthorn.event_commits ec where ec.tx = any (array(select pg_snapshot_xip($5::text::pg_snapshot)))))
 order by c.conv_id limit $7`

	// Unread counts: per conversation the visible stretches after the mark, two index probes each.
	unreadSQL = `select r.conv, least(sum(posthorn.messages_between(r.conv, r.lo - 1, r.hi)), 1000)::bigint
  from unnest($1::text[], $2::bigint[], $3::bigint[]) r (conv, lo, hi) group by r.conv`

	bootSQL = `select coalesce((select b.nonce::text from posthorn.boot b), '') || '.' || s.epoch, pg_current_snapshot()::text, s.trimmed_through::text
  from posthorn.space($1, $2, $3, $4) s`

	// Present members by user id; a page.
	membersSQL = `select m.user_id, u.name, m.role, m.from_seq from posthorn.memberships m join posthorn.users u on u.user_id = m.user_id
 where m.conv_id = $1 and m.to_seq is null and m.user_id > $2 order by m.user_id limit $3`

	confirmSQL = `select p.seq, p.mid from unnest($2::bigint[], $3::text[]) p (seq, mid)
  join posthorn.events e on e.conv_id = $1 and e.seq = p.seq and e.mid::text = p.mid
 where ($4::text is null or e.kind not in ('join', 'leave') or $4 = any (e.users))
 order by p.seq desc`

	// What the hub must know of a device's conversations.
	deviceViewsSQL = `select c.conv_id, c.kind, $1::text, posthorn.head(c.conv_id), p.froms, p.tos, p.sees, p.roles, v.vhead,
       dc.conv_id is not null, coalesce(dc.start_seq, 0), coalesce(dc.delivered_seq, 0)
  from (select distinct m.conv_id from posthorn.memberships m where m.user_id = $1) mine
  join posthorn.conversations c on c.conv_id = mine.conv_id
  cross join posthorn.space($4, $5, $6, $7) s
  cross join lateral (
    ` + periodsOf + `$1) p
  cross join lateral (select posthorn.visible_head(c.conv_id, c.kind, $1, nullif(p.tos[cardinality(p.tos)], 0),
           p.roles[cardinality(p.roles)], posthorn.head(c.conv_id)) as vhead) v
  left join posthorn.device_cursors dc
    on dc.conv_id = c.conv_id and dc.device_id = $2 and dc.install_epoch = $3 and dc.epoch = s.epoch
 where p.tos[cardinality(p.tos)] = 0 or coalesce(dc.delivered_seq, 0) < v.vhead`

	userViewsSQL = `select c.conv_id, c.kind, u.user_id, posthorn.head(c.conv_id), p.froms, p.tos, p.sees, p.roles,
       posthorn.visible_head(c.conv_id, c.kind, u.user_id, nullif(p.tos[cardinality(p.tos)], 0), p.roles[cardinality(p.roles)], posthorn.head(c.conv_id)),
       false, 0::bigint, 0::bigint
  from unnest($2::text[]) u (user_id)
  join posthorn.conversations c on c.conv_id = $1
  cross join posthorn.space($3, $4, $5, $6) s
  cross join lateral (
    ` + periodsOf + `u.user_id) p
 where p.froms is not null`

	ackLockSQL = `set local lock_timeout = '50ms'`

	ackBatchSQL = `select a.codes, a.seqs from posthorn.hold($5, $6, $7, $8) s cross join posthorn.ack_batch($1, $2, $3, $4) a`

	helloSQL = `select h.n, h.code, coalesce(h.device_id, 0), coalesce(h.install_epoch, 0), coalesce(h.resume, ''), h.epoch, h.generation, h.elsewhere
  from posthorn.hold($7, $8, $9, $10) s cross join posthorn.hello_batch($1, $2, $3, $4, $5, $6) h`

	// A device that somebody says hello to just now is left out: it gets new nonces.
	firstFrameSQL = `update posthorn.devices d set resume_prev = null
  from unnest($1::bigint[], $2::text[]) r (device, resume)
  join (select x.device_id from posthorn.devices x where x.device_id = any ($1) order by x.device_id for no key update skip locked) free on free.device_id = r.device
 where d.device_id = r.device and d.resume::text = r.resume and d.resume_prev is not null`

	// next_seq follows the log lazily, in key order, and leaves alone what somebody holds.
	foldSQL = `update posthorn.conversations c set next_seq = f.seq + 1, last_at = f.at
  from (select c0.conv_id, l.seq, l.at from posthorn.conversations c0
          cross join lateral (select e.seq, e.at from posthorn.events e where e.conv_id = c0.conv_id order by e.seq desc limit 1) l
         where c0.conv_id = any ($1) and c0.next_seq <= l.seq
         order by c0.conv_id for no key update of c0 skip locked) f
 where c.conv_id = f.conv_id`

	oldestTxSQL = `select coalesce(max(extract(epoch from clock_timestamp() - xact_start)), 0)::float8 from pg_stat_activity
 where backend_xmin is not null and pid <> pg_backend_pid() and datname = current_database()`
)

// statements are all of the above that are sent as they are.
var statements = []string{checkSQL, migratedSQL, lockSQL, putRulesSQL, setChannelSQL, sendBatchSQL, changeSQL, openSQL, tailSQL, factsSQL, shorterSQL, settleSQL, adoptSQL, primarySQL,
	enlistSQL, beatSQL, leaveSQL, guardSQL, trimSQL, routesSQL, notifySQL, auditSQL, claimsSQL, putBootSQL, headsSQL, presentSQL, rangesSQL, viewSQL,
	forwardSQL, backwardSQL, markStartSQL, tailStartSQL, listSQL, unreadSQL, bootSQL, membersSQL, confirmSQL, deviceViewsSQL, userViewsSQL,
	ackLockSQL, ackBatchSQL, helloSQL, firstFrameSQL, foldSQL, oldestTxSQL}
