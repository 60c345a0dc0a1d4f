-- Joins, leaves and titles: one event in the conversation's log, under the conversation's row lock like every send.
-- code is '' for a new event, DUP, or an error code with a sentence in why.
create function posthorn.change(
    p_origin text, p_batch bigint, p_channel text, p_lock text,
    p_conv text, p_kind text, p_act text, p_sender text, p_device bigint, p_server boolean, p_cmid text,
    p_users text[], p_role text, p_title text, p_group_max bigint, p_channel_max bigint,
    out pid integer, out tx text, out epoch bigint, out code text, out why text,
    out seq bigint, out prev bigint, out mid uuid, out at timestamptz, out msg_no bigint, out users text[], out data text
) language plpgsql as $$
declare
    v_conv  posthorn.conversations;
    v_mac   bytea;
    v_role  text;
    v_last  record;
    v_ms    bigint;
    v_bad   text[];
    v_count bigint;
    v_found record;
begin
    pid := pg_backend_pid(); code := ''; why := '';
    if p_lock is not null then perform set_config('lock_timeout', p_lock, true); end if;
    select s.epoch into epoch from posthorn.sequence_space s;
    select * into v_conv from posthorn.conversations c where c.conv_id = p_conv for no key update;
    if not found then code := 'NOT_MEMBER'; return; end if;

    users := array(select distinct u collate "C" from unnest(p_users) u order by 1);
    v_mac := posthorn.content_mac(v_conv.mac_key, p_kind, null, null, null, null, users, coalesce(p_title, p_role));

    -- Before membership is judged: a retried leave gets its first answer.
    select e.seq, e.mid, e.at, e.content_mac into v_found from posthorn.events e
     where e.conv_id = p_conv and e.sender = p_sender and e.cmid = p_cmid;
    if found then
        code := case when v_found.content_mac = v_mac then 'DUP' else 'CMID_REUSED' end;
        seq := v_found.seq; mid := v_found.mid; at := v_found.at;
        return;
    end if;

    select m.role into v_role from posthorn.memberships m where m.conv_id = p_conv and m.user_id = p_sender and m.to_seq is null;
    if not found and (p_sender <> '' or not p_server) then code := 'NOT_MEMBER'; return; end if;
    if not p_server and not exists (select 1 from posthorn.rules r where r.kind = v_conv.kind and r.act = p_act and r.role = v_role) then
        code := 'FORBIDDEN';
        return;
    end if;
    if v_conv.kind = 'direct' and p_kind in ('join', 'leave') then
        code := 'FORBIDDEN'; why := 'a direct conversation keeps its two people';
        return;
    end if;
    if v_conv.keys_removed_before is not null and posthorn.uuid7_time(p_cmid) < v_conv.keys_removed_before then
        code := 'CMID_TOO_OLD'; return;
    end if;

    if p_kind = 'join' then
        v_bad := array(select u from unnest(users) u where not exists (select 1 from posthorn.users x where x.user_id = u));
        if v_bad <> '{}' then code := 'NOT_FOUND'; why := 'no such user: ' || v_bad[1]; return; end if;
        -- Who is in already is left out of the event; the content of the request, which a retry repeats, keeps them.
        users := array(select u from unnest(users) u where not exists (
            select 1 from posthorn.memberships m where m.conv_id = p_conv and m.user_id = u and m.to_seq is null));
        if users = '{}' then code := 'FORBIDDEN'; why := 'all of them are members already'; return; end if;
        select count(*) into v_count from posthorn.memberships m where m.conv_id = p_conv and m.to_seq is null;
        if v_count + cardinality(users) > (case v_conv.kind when 'channel' then p_channel_max else p_group_max end) then
            code := 'TOO_LARGE'; why := 'the conversation has too many members'; return;
        end if;
    elsif p_kind = 'leave' then
        users := array(select u from unnest(users) u where exists (
            select 1 from posthorn.memberships m where m.conv_id = p_conv and m.user_id = u and m.to_seq is null));
        if users = '{}' then code := 'NOT_FOUND'; why := 'none of them is a member'; return; end if;
        if p_act = 'remove' and not p_server and exists (select 1 from posthorn.memberships m
             where m.conv_id = p_conv and m.to_seq is null and m.role = 'owner' and m.user_id = any (users) and m.user_id <> p_sender) then
            code := 'FORBIDDEN'; why := 'the owner cannot be removed'; return;
        end if;
    end if;

    select e.seq, e.at, e.msg_no into v_last from posthorn.events e where e.conv_id = p_conv order by e.seq desc limit 1;
    seq := greatest(v_conv.next_seq, coalesce(v_last.seq, 0) + 1);
    if seq > 9007199254740991 then code := 'TOO_LARGE'; why := 'the conversation is full'; return; end if;
    -- What the sender saw last: the others' membership events are hidden from a plain member of a channel.
    prev := posthorn.visible_head(p_conv, v_conv.kind, p_sender, null, coalesce(v_role, 'admin'), seq - 1);
    v_ms := floor(extract(epoch from greatest(clock_timestamp(), v_last.at)) * 1000);
    at := to_timestamp(v_ms / 1000.0);
    mid := posthorn.new_mid(v_ms);
    msg_no := coalesce(v_last.msg_no, 0);
    if p_kind = 'meta' then
        data := json_build_object('title', p_title)::text;
        users := null;
        update posthorn.conversations c set title = p_title where c.conv_id = p_conv;
    else
        data := json_build_object('users', to_json(users))::text;
    end if;

    insert into posthorn.events (conv_id, seq, kind, mid, sender, device_id, cmid, content_mac, data, users, msg_no, at)
    values (p_conv, seq, p_kind, mid, p_sender, p_device, p_cmid, v_mac, data, users, msg_no, at);
    if p_kind = 'join' then
        insert into posthorn.memberships (conv_id, user_id, from_seq, role, sees_from)
        select p_conv, u, seq, coalesce(p_role, 'member'), case v_conv.history when 'all' then 1 else seq end from unnest(users) u;
    elsif p_kind = 'leave' then
        update posthorn.memberships m set to_seq = seq where m.conv_id = p_conv and m.user_id = any (users) and m.to_seq is null;
    end if;
    insert into posthorn.event_commits (origin, batch, convs, first_seq, last_seq, users)
    values (p_origin, p_batch, array[p_conv], array[seq], array[seq], case when p_kind = 'join' then users end)
    returning event_commits.tx::text into tx;
    perform posthorn.ring(p_channel, array[p_conv], array[seq]);
end
$$;

-- A new conversation with its first event, which names the first members. A direct conversation exists once for its two
-- people: opening it again answers with the first one.
create function posthorn.open(
    p_origin text, p_batch bigint, p_channel text,
    p_conv text, p_creator text, p_device bigint, p_cmid text, p_kind text, p_title text, p_members text[], p_history text,
    out tx text, out code text, out why text, out conv text, out head bigint,
    out mid uuid, out at timestamptz, out users text[], out data text
) language plpgsql as $$
declare
    v_bad   text[];
    v_pair  text;
    v_key   bytea := decode(replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', ''), 'hex');
    v_found record;
    v_ms    bigint;
begin
    code := ''; why := '';
    users := array(select distinct u collate "C" from unnest(p_members || case when p_creator = '' then '{}'::text[] else array[p_creator] end) u order by 1);
    if p_kind = 'direct' then
        if cardinality(users) <> 2 then code := 'BAD_FRAME'; why := 'a direct conversation has two members'; return; end if;
        v_pair := octet_length(users[1]) || ':' || users[1] || users[2];
    end if;
    data := json_build_object('kind', p_kind, 'title', p_title, 'history', p_history, 'users', to_json(users))::text;

    for attempt in 1 .. 2 loop
        select c.conv_id, c.mac_key, c.open_cmid is not distinct from p_cmid and c.created_by = p_creator as same_request,
               e.content_mac, e.mid, e.at into v_found
          from posthorn.conversations c left join posthorn.events e on e.conv_id = c.conv_id and e.seq = 1
         where (c.created_by = p_creator and c.open_cmid = p_cmid) or c.direct_pair = v_pair or c.conv_id = p_conv
         order by 3 desc, c.conv_id limit 1;
        if found then
            conv := v_found.conv_id; mid := v_found.mid; at := v_found.at;
            if v_found.same_request then
                code := case when v_found.content_mac = posthorn.content_mac(v_found.mac_key, 'open', null, null, p_conv, data, users, null)
                             then 'DUP' else 'CMID_REUSED' end;
            elsif v_pair is not null and p_conv is null then
                code := 'DUP';
            else
                code := 'CMID_REUSED'; why := 'a conversation with this id exists';
            end if;
            head := posthorn.head(conv);
            return;
        end if;
        exit when attempt = 2;

        v_bad := array(select u from unnest(users) u where not exists (select 1 from posthorn.users x where x.user_id = u));
        if v_bad <> '{}' then code := 'NOT_FOUND'; why := 'no such user: ' || v_bad[1]; return; end if;
        v_ms := floor(extract(epoch from clock_timestamp()) * 1000);
        at := to_timestamp(v_ms / 1000.0);
        mid := posthorn.new_mid(v_ms);
        conv := coalesce(p_conv, 'c-' || mid);
        head := 1;
        insert into posthorn.conversations (conv_id, kind, title, history, created_by, open_cmid, direct_pair, mac_key)
        values (conv, p_kind, p_title, p_history, p_creator, p_cmid, v_pair, v_key) on conflict do nothing;
        -- Somebody opened the same one in between: look again.
        continue when not found;
        insert into posthorn.events (conv_id, seq, kind, mid, sender, device_id, cmid, content_mac, data, users, msg_no, at)
        values (conv, 1, 'open', mid, p_creator, p_device, '', -- an open has its own space of cmids: a send may use the same one
                posthorn.content_mac(v_key, 'open', null, null, p_conv, data, users, null), data, users, 0, at);
        insert into posthorn.memberships (conv_id, user_id, from_seq, role, sees_from)
        select conv, u, 1, case when u = p_creator then 'owner' else 'member' end, 1 from unnest(users) u;
        insert into posthorn.event_commits (origin, batch, convs, first_seq, last_seq, users)
        values (p_origin, p_batch, array[conv], array[1], array[1], users) returning event_commits.tx::text into tx;
        perform posthorn.ring(p_channel, array[conv], array[1::bigint]);
        return;
    end loop;
    code := 'UNAVAILABLE'; why := 'the conversation is being opened';
end
$$;
