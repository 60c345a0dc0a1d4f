-- Sending inside the application's own transaction: the message commits with what it speaks of, or not at all, and the
-- tail brings it to every gateway. docs/sql.md lists the error states.
create function posthorn.fail(p_code text, p_why text) returns void language plpgsql as $$
begin
    raise exception using
        errcode = case p_code when 'BAD_FRAME' then 'PH400' when 'FORBIDDEN' then 'PH403' when 'NOT_MEMBER' then 'PH404'
                              when 'NOT_FOUND' then 'PH405' when 'CMID_REUSED' then 'PH409' when 'CMID_TOO_OLD' then 'PH410'
                              when 'TOO_LARGE' then 'PH413' else 'PH500' end,
        message = p_code || ': ' || p_why;
end
$$;

-- Holds data to the rules of a frame: one JSON object, no U+0000, no lone surrogate (both refused by jsonb), no repeated
-- name at any depth, not too deep.
create function posthorn.check_data(p_data text) returns void language plpgsql as $$
declare
    v_repeated boolean;
    v_depth    integer;
begin
    begin
        if jsonb_typeof(p_data::jsonb) <> 'object' then perform posthorn.fail('BAD_FRAME', 'data is no JSON object'); end if;
    exception when data_exception or statement_too_complex then
        perform posthorn.fail('BAD_FRAME', 'data is no valid JSON object');
    end;
    with recursive walk (v, depth) as (
        select p_data::json, 1
        union all
        select c.value, w.depth + 1 from walk w, lateral (
            select o.value from json_each(case when json_typeof(w.v) = 'object' then w.v else '{}' end) o
            union all
            select a.value from json_array_elements(case when json_typeof(w.v) = 'array' then w.v else '[]' end) a) c
         where w.depth <= 64 and json_typeof(c.value) in ('object', 'array')
    )
    select bool_or(json_typeof(w.v) = 'object'
                   and (select count(*) <> count(distinct k) from json_object_keys(case when json_typeof(w.v) = 'object' then w.v else '{}' end) k)),
           max(w.depth)
      into v_repeated, v_depth from walk w;
    if v_repeated then perform posthorn.fail('BAD_FRAME', 'data repeats a name'); end if;
    if v_depth > 63 then perform posthorn.fail('BAD_FRAME', 'data is too deep'); end if;
end
$$;

create function posthorn.send(conv text, sender text, cmid text, body text, data text default null,
    out seq bigint, out mid text, out dup boolean)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    v_out     record;
    v_channel text;
begin
    if conv is null or octet_length(conv) not between 1 and 128 then perform posthorn.fail('BAD_FRAME', 'conv has 1 to 128 bytes'); end if;
    if sender is null or octet_length(sender) > 128 then perform posthorn.fail('BAD_FRAME', 'sender has 0 to 128 bytes'); end if;
    if cmid is null or octet_length(cmid) not between 1 and 64 then perform posthorn.fail('BAD_FRAME', 'cmid has 1 to 64 bytes'); end if;
    if body is null and data is null then perform posthorn.fail('BAD_FRAME', 'a message has body or data'); end if;
    if coalesce(octet_length(body), 0) + coalesce(octet_length(data), 0) > 65536 then perform posthorn.fail('TOO_LARGE', 'body and data have at most 65536 bytes'); end if;
    if data is not null then perform posthorn.check_data(data); end if;

    select s.value into v_channel from posthorn.settings s where s.name = 'channel';
    begin
        select * into v_out from posthorn.send_batch('', 0, v_channel, false, null,
            array[conv], array[sender], array[null]::bigint[], array[true], array[cmid], array[body], array[data], array[null]::bigint[]);
    exception when unique_violation then
        -- The caller's snapshot is older than the conversation's newest event.
        raise serialization_failure using message = 'could not serialize access: send again in a new transaction';
    end;
    if v_out.codes[1] not in ('', 'DUP') then
        perform posthorn.fail(v_out.codes[1], case v_out.codes[1]
            when 'NOT_MEMBER' then 'the sender is no member of this conversation'
            when 'CMID_REUSED' then 'this cmid was used for another message'
            when 'CMID_TOO_OLD' then 'this cmid is older than the keys that are kept'
            when 'TOO_LARGE' then 'the conversation is full'
            else 'refused' end);
    end if;
    seq := v_out.seqs[1]; mid := v_out.mids[1]; dup := v_out.codes[1] = 'DUP';
end
$$;
revoke all on function posthorn.send(text, text, text, text, text) from public;

-- Roles belong to the whole cluster and need CREATEROLE: where the server may not make them, an operator does, and runs
-- the migration's grants by calling this again.
create function posthorn.grant_roles() returns void language plpgsql as $$
begin
    begin
        if not exists (select 1 from pg_roles where rolname = 'posthorn_app') then create role posthorn_app nologin; end if;
        if not exists (select 1 from pg_roles where rolname = 'posthorn_read') then create role posthorn_read nologin; end if;
    exception
        when insufficient_privilege then raise notice 'roles posthorn_app and posthorn_read were not made: CREATEROLE is missing';
        when duplicate_object or unique_violation then null;
    end;
    if exists (select 1 from pg_roles where rolname = 'posthorn_app') then
        grant usage on schema posthorn to posthorn_app;
        grant execute on function posthorn.send(text, text, text, text, text) to posthorn_app;
    end if;
    if exists (select 1 from pg_roles where rolname = 'posthorn_read') then
        grant usage on schema posthorn to posthorn_read;
        grant select on posthorn.conversation_heads to posthorn_read;
    end if;
end
$$;
select posthorn.grant_roles();
