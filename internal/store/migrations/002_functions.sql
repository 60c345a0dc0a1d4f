-- The one definition of a conversation's head.
create function posthorn.head(p_conv text) returns bigint language sql stable as $$
    select greatest(c.next_seq - 1, coalesce(
        (select e.seq from posthorn.events e where e.conv_id = c.conv_id order by e.seq desc limit 1), 0))
      from posthorn.conversations c where c.conv_id = p_conv
$$;

create view posthorn.conversation_heads as
    select c.conv_id, greatest(c.next_seq - 1, coalesce(
        (select e.seq from posthorn.events e where e.conv_id = c.conv_id order by e.seq desc limit 1), 0)) as head
      from posthorn.conversations c;

-- The newest event that a user may see, from their newest period. In a channel membership events are hidden from those
-- they do not concern; the join event itself always is visible, so a row is found.
create function posthorn.visible_head(p_conv text, p_kind text, p_user text, p_to bigint, p_role text, p_head bigint)
returns bigint language sql stable as $$
    select case when p_kind <> 'channel' or p_role in ('owner', 'admin') then coalesce(p_to, p_head)
           else coalesce((select e.seq from posthorn.events e
                 where e.conv_id = p_conv and e.seq <= coalesce(p_to, p_head)
                   and (e.kind not in ('join', 'leave') or p_user = any (e.users))
                 order by e.seq desc limit 1), 0) end
$$;

-- Every part of the content with its length or a mark of absence, so that no two contents read alike. The key keeps a
-- short text from being guessed once retention has blanked it.
create function posthorn.content_mac(p_key bytea, p_kind text, p_target bigint, p_reply bigint, p_body text, p_data text, p_users text[], p_more text)
returns bytea language sql stable as $$
    select sha256(p_key || convert_to(
        p_kind || '|' || coalesce(p_target::text, '-') || '|' || coalesce(p_reply::text, '-')
        || '|' || coalesce(octet_length(p_body) || ':' || p_body, '-')
        || '|' || coalesce(octet_length(p_data) || ':' || p_data, '-')
        || '|' || coalesce(p_users::text, '-')
        || '|' || coalesce(octet_length(p_more) || ':' || p_more, '-'), 'UTF8'))
$$;

-- Unique, and sortable by the database's time: a UUIDv7.
create function posthorn.new_mid(p_ms bigint) returns uuid language sql volatile as $$
    select (substr(lpad(to_hex(p_ms), 12, '0'), 1, 8) || '-' || substr(lpad(to_hex(p_ms), 12, '0'), 9, 4)
            || '-7' || substr(gen_random_uuid()::text, 16))::uuid
$$;

-- The time inside a UUIDv7, null for anything else.
create function posthorn.uuid7_time(p_id text) returns timestamptz language sql immutable as $$
    select case when p_id ~ '^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-7[0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}$'
        then to_timestamp(('x' || lpad(replace(substr(p_id, 1, 13), '-', ''), 16, '0'))::bit(64)::bigint / 1000.0) end
$$;

-- Rings the doorbell inside the caller's transaction: conv:seq per line, below the 8,000 bytes that NOTIFY takes. The
-- content only wakes readers; an empty channel switches the bell off.
create function posthorn.ring(p_channel text, p_convs text[], p_seqs bigint[]) returns void language plpgsql as $$
declare
    v_payload text := '';
    v_line    text;
begin
    if coalesce(p_channel, '') = '' then return; end if;
    for i in 1 .. coalesce(array_length(p_convs, 1), 0) loop
        v_line := p_convs[i] || ':' || p_seqs[i];
        if octet_length(v_payload) + octet_length(v_line) + 1 > 7900 then
            perform pg_notify(p_channel, v_payload);
            v_payload := '';
        end if;
        v_payload := v_payload || case when v_payload = '' then '' else E'\n' end || v_line;
    end loop;
    if v_payload <> '' then perform pg_notify(p_channel, v_payload); end if;
end
$$;

-- One batch of messages: the whole set or, on an error, nothing. codes[i] is '' for a new event, DUP, LOCKED (with
-- p_skip: somebody else holds the conversation), or an error code. p_lock is the longest wait for a lock; null leaves the
-- caller's setting. Equal (conv, sender, cmid) must have been folded.
create function posthorn.send_batch(
    p_origin text, p_batch bigint, p_channel text, p_skip boolean, p_lock text,
    p_conv text[], p_sender text[], p_device bigint[], p_server boolean[], p_cmid text[],
    p_body text[], p_data text[], p_reply bigint[],
    out pid integer, out tx text, out epoch bigint,
    out codes text[], out seqs bigint[], out mids text[], out ats timestamptz[], out msg_nos bigint[]
) language plpgsql as $$
declare
    v_locked text[];
    v_ok     text[];
    v_now    bigint;
    v_convs  text[];
    v_last   bigint[];
begin
    pid := pg_backend_pid();
    if p_lock is not null then perform set_config('lock_timeout', p_lock, true); end if;
    -- In key order, so that two batches never wait for each other. A statement of its own: the next one has a newer
    -- snapshot and sees what the holders before us committed.
    if p_skip then
        select array_agg(s.conv_id) into v_locked from (
            select c.conv_id from posthorn.conversations c where c.conv_id = any (p_conv)
             order by c.conv_id for no key update skip locked) s;
    else
        perform 1 from posthorn.conversations c where c.conv_id = any (p_conv) order by c.conv_id for no key update;
    end if;

    select s.epoch into epoch from posthorn.sequence_space s;
    select array_agg(r.kind || '/' || r.role) into v_ok from posthorn.rules r where r.act = 'send';
    v_now := floor(extract(epoch from clock_timestamp()) * 1000);

    with found as (
        select i.*, c.kind as ckind, c.next_seq,
               c.conv_id is null as absent,
               p_skip and c.conv_id is not null and not (c.conv_id = any (coalesce(v_locked, '{}'))) as locked,
               -- The duplicate is looked for before anything is judged. The row comparison with its order leaves the
               -- planner one index, whatever its statistics say.
               d.seq as dseq, d.mid as dmid, d.at as dat, d.content_mac as dmac,
               posthorn.content_mac(c.mac_key, 'msg', null, i.reply, i.body, i.data, null, null) as mac,
               m.role,
               c.keys_removed_before is not null and posthorn.uuid7_time(i.cmid) < c.keys_removed_before as too_old,
               -- The last event is asked for once per conversation of the batch.
               case when row_number() over (partition by i.conv order by i.n) = 1 then
                   (select array[e.seq, floor(extract(epoch from e.at) * 1000)::bigint, e.msg_no]
                      from posthorn.events e where e.conv_id = i.conv order by e.seq desc limit 1) end as newest
          from unnest(p_conv, p_sender, p_device, p_server, p_cmid, p_body, p_data, p_reply)
               with ordinality as i (conv, sender, device, server, cmid, body, data, reply, n)
          left join lateral (select * from posthorn.conversations c0 where c0.conv_id = i.conv offset 0) c on true
          left join lateral (
               select e.conv_id, e.sender, e.cmid, e.seq, e.mid, e.at, e.content_mac from posthorn.events e
                where (e.conv_id, e.sender, e.cmid) >= (i.conv, i.sender, i.cmid)
                order by e.conv_id, e.sender, e.cmid limit 1) d
               on d.conv_id = i.conv and d.sender = i.sender and d.cmid = i.cmid
          left join lateral (
               select m0.role from posthorn.memberships m0
                where m0.conv_id = i.conv and m0.user_id = i.sender and m0.to_seq is null offset 0) m on true
    ), judged as (
        select f.*, coalesce(max(f.newest) over w, array[0, 0, 0]::bigint[]) as last,
               case when f.absent then 'NOT_MEMBER'
                    when f.locked then 'LOCKED'
                    when f.dseq is not null then case when f.dmac = f.mac then 'DUP' else 'CMID_REUSED' end
                    when f.sender <> '' and f.role is null then 'NOT_MEMBER'
                    when not f.server and not (f.ckind || '/' || f.role = any (v_ok)) then 'FORBIDDEN'
                    when f.too_old then 'CMID_TOO_OLD'
                    else '' end as code0
          from found f window w as (partition by f.conv)
    ), placed as (
        select j.*, greatest(j.last[1], j.next_seq - 1) as base,
               case when j.code0 = '' and j.reply is not null and j.reply > greatest(j.last[1], j.next_seq - 1)
                    then 'NOT_FOUND' else j.code0 end as code1
          from judged j
    ), numbered as (
        select p.*, case when p.code1 = '' and p.base + count(*) filter (where p.code1 = '') over w > 9007199254740991
                         then 'TOO_LARGE' else p.code1 end as code,
               count(*) filter (where p.code1 = '') over w as k,
               greatest(v_now, p.last[2]) as ms
          from placed p window w as (partition by p.conv order by p.n)
    ), fresh as (
        select x.*, x.base + x.k as seq, posthorn.new_mid(x.ms) as mid, to_timestamp(x.ms / 1000.0) as at
          from numbered x where x.code = ''
    ), written as (
        insert into posthorn.events (conv_id, seq, kind, mid, sender, device_id, cmid, content_mac, body, data, reply_to, msg_no, at)
        select f.conv, f.seq, 'msg', f.mid, f.sender, f.device, f.cmid, f.mac, f.body, f.data, f.reply, f.last[3] + f.k, f.at
          from fresh f
    ), spans as (
        select f.conv, min(f.seq) as lo, max(f.seq) as hi from fresh f group by f.conv
    ), logged as (
        insert into posthorn.event_commits (origin, batch, convs, first_seq, last_seq)
        select p_origin, p_batch, array_agg(s.conv), array_agg(s.lo), array_agg(s.hi) from spans s having count(*) > 0
        returning event_commits.tx, event_commits.convs, event_commits.last_seq
    )
    select array_agg(x.code order by x.n),
           array_agg(coalesce(f.seq, x.dseq, 0) order by x.n),
           array_agg(coalesce(coalesce(f.mid, x.dmid)::text, '') order by x.n),
           array_agg(coalesce(f.at, x.dat, 'epoch') order by x.n),
           array_agg(x.last[3] + x.k order by x.n),
           (select l.tx::text from logged l), (select l.convs from logged l), (select l.last_seq from logged l)
      into codes, seqs, mids, ats, msg_nos, tx, v_convs, v_last
      from numbered x left join fresh f on f.n = x.n;

    perform posthorn.ring(p_channel, v_convs, v_last);
end
$$;
