-- Many gateways on one database: leases, routes, and the epoch, which tells when history was rewound. docs/storage.md
-- gives the reasons.
alter table posthorn.gateways
    add column beat     bigint not null default 0, -- rises with each heartbeat; a lower one than the gateway remembers: rewound
    add column vote     text collate "C",          -- the timeline that it has judged
    add column vouches  boolean,                   -- what it said: null, it has seen nothing that could have been lost
    drop column lane_batches;
alter table posthorn.sequence_space
    add column space_id     uuid not null default gen_random_uuid(), -- which installation this is; dumps and copies keep it
    add column vote         text collate "C",                        -- a new timeline that is being judged
    add column vote_began   timestamptz,
    add column electorate   text[],
    add column presented_at timestamptz; -- when a client's word last changed the epoch
-- A new database begins with its own time, so that one which was wiped and made anew is not taken for the one before.
update posthorn.sequence_space set epoch = floor(extract(epoch from clock_timestamp()) * 1000)
 where not exists (select 1 from posthorn.conversations);
create table posthorn.xid_notes (
    at  timestamptz primary key default clock_timestamp(),
    low xid8 not null
);

-- The timeline that WAL is written to. pg_control_checkpoint() is stale for seconds after a promotion.
create function posthorn.timeline() returns text language sql volatile as $$
    select case when not pg_is_in_recovery() then substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) end
$$;

-- The sequence space, for a gateway that has seen it as it is. Any sign of another life of the database raises PH503: a
-- boot mark that the gateway has not judged, a heartbeat of it that is gone, another epoch. Every statement that serves
-- clients goes through here, so that no history is shown or continued before somebody has compared it with what was told.
create function posthorn.space(p_gateway text, p_mark text, p_beat bigint, p_epoch bigint) returns posthorn.sequence_space
language plpgsql stable as $$
declare
    v posthorn.sequence_space;
begin
    select s.* into v from posthorn.sequence_space s
     where s.epoch = p_epoch
       and exists (select 1 from posthorn.boot b where b.nonce::text = p_mark)
       and exists (select 1 from posthorn.gateways g where g.gateway_id = p_gateway and g.beat >= p_beat);
    if not found then
        raise exception using errcode = 'PH503', message = 'UNAVAILABLE: the history of this database is being compared';
    end if;
    return v;
end
$$;

-- The same for what writes, in its transaction: until it ends no new epoch begins (settle waits for it), and it waits for
-- the disk whatever the role's synchronous_commit says. The statements beside it in one query may be run first; then they
-- are rolled back where this refuses.
create function posthorn.hold(p_gateway text, p_mark text, p_beat bigint, p_epoch bigint) returns posthorn.sequence_space
language plpgsql volatile as $$
declare
    v posthorn.sequence_space;
begin
    perform pg_advisory_xact_lock_shared(hashtextextended('posthorn.epoch', 0));
    if current_setting('synchronous_commit') not in ('on', 'remote_apply') then
        perform set_config('synchronous_commit', 'on', true);
    end if;
    select s.* into v from posthorn.space(p_gateway, p_mark, p_beat, p_epoch) s; -- by a snapshot from after the lock
    return v;
end
$$;

-- A heartbeat; null where the database has lost the last one, or runs on a timeline that is not settled. Nobody waits for
-- it to reach the disk: a lost one is only a reason to compare.
create function posthorn.beat(p_gateway text, p_beat bigint, p_lease interval) returns bigint language plpgsql volatile as $$
declare
    v_beat bigint;
begin
    perform set_config('synchronous_commit', 'off', true);
    update posthorn.gateways g
       set beat = greatest(g.beat, p_beat) + 1, heartbeat_at = clock_timestamp(), lease_until = clock_timestamp() + p_lease
     where g.gateway_id = p_gateway and g.beat >= p_beat
       and posthorn.timeline() is not distinct from (select s.timeline from posthorn.sequence_space s)
    returning g.beat into v_beat;
    return v_beat;
end
$$;

-- A gateway comes in, or comes back after its row was lost.
create function posthorn.enlist(p_gateway text, p_beat bigint, p_lease interval) returns bigint language sql volatile as $$
    insert into posthorn.gateways as g (gateway_id, beat, lease_until)
    values (p_gateway, p_beat + 1, clock_timestamp() + p_lease)
    on conflict (gateway_id) do update
       set beat = greatest(g.beat, excluded.beat), heartbeat_at = clock_timestamp(), lease_until = excluded.lease_until
    returning g.beat
$$;

-- Decides whether the epoch stays. p_vouches: everything that the gateway has seen here is there (true) or not (false);
-- null, it has seen nothing of this epoch. p_presented: the highest epoch that anybody has shown it; p_believed: not just a
-- client. state is 'ok', 'wait' (for other gateways), or 'again' (this was not the epoch that the gateway judged).
-- p_former: the process whose memory this one goes on with.
create function posthorn.settle(
    p_gateway text, p_former text, p_epoch bigint, p_vouches boolean, p_presented bigint, p_believed boolean, p_lease interval,
    out state text, out epoch bigint, out renewed text
) language plpgsql volatile as $$
declare
    v          posthorn.sequence_space;
    v_now      bigint := floor(extract(epoch from clock_timestamp()) * 1000);
    v_system   bigint;
    v_timeline text := posthorn.timeline();
begin
    perform pg_advisory_xact_lock(hashtextextended('posthorn.epoch', 0));
    select s.* into v from posthorn.sequence_space s for update;
    select c.system_identifier into v_system from pg_control_system() c;
    state := 'ok'; epoch := v.epoch;
    if v.epoch <> p_epoch then state := 'again'; return; end if;
    if p_presented > v_now + 86400000 then p_presented := null; end if;

    if p_vouches is false then
        renewed := 'something that this gateway has seen is gone';
    elsif p_presented > v.epoch and p_believed then
        renewed := 'this gateway has seen a later epoch';
    elsif v.system_identifier is not null and v.system_identifier <> v_system then
        renewed := 'the database is another cluster';
    elsif p_presented > v.epoch and coalesce(v.presented_at, '-infinity') < clock_timestamp() - interval '10 minutes' then
        renewed := 'a client has seen a later epoch';
        update posthorn.sequence_space set presented_at = clock_timestamp();
    elsif v.timeline <> v_timeline then
        if v.vote is distinct from v_timeline then
            -- Whose lease was alive when the last heartbeat that this database knows was given.
            update posthorn.sequence_space set vote = v_timeline, vote_began = clock_timestamp(), electorate = array(
                select g.gateway_id from posthorn.gateways g where g.lease_until > (select max(x.heartbeat_at) from posthorn.gateways x))
            returning * into v;
        end if;
        update posthorn.gateways g set vote = v_timeline, vouches = p_vouches where g.gateway_id in (p_gateway, p_former);
        if not exists (select 1 from posthorn.gateways g where g.gateway_id = any (v.electorate) and g.vote is distinct from v_timeline) then
            if not coalesce(p_vouches, false) and not exists (select 1 from posthorn.gateways g where g.vote = v_timeline and g.vouches) then
                renewed := 'no gateway vouches for the new timeline';
            end if;
        elsif clock_timestamp() > v.vote_began + p_lease then
            renewed := 'a gateway that may have seen more does not speak';
        else
            state := 'wait';
            return;
        end if;
    end if;

    if renewed is not null then
        epoch := greatest(v.epoch + 1, coalesce(p_presented + 1, 0), v_now);
        insert into posthorn.signals (kind, key) values ('epoch', epoch::text);
        -- Every gateway must judge anew before it serves on.
        delete from posthorn.boot;
        insert into posthorn.boot default values;
    end if;
    if v.system_identifier <> v_system then
        -- Transaction ids of another cluster mean nothing here; those to come would be taken for new for ever.
        delete from posthorn.event_commits;
        delete from posthorn.signals;
        delete from posthorn.xid_notes;
        update posthorn.sequence_space set trimmed_through = pg_snapshot_xmin(pg_current_snapshot());
    end if;
    update posthorn.sequence_space s
       set epoch = settle.epoch, system_identifier = v_system, timeline = v_timeline, vote = null, vote_began = null, electorate = null
     where (s.epoch, s.system_identifier, s.timeline) is distinct from (settle.epoch, v_system, v_timeline);
end
$$;

-- An operator vouches that this cluster goes on where another one stopped. '' where there is nothing to adopt.
create function posthorn.adopt() returns text language plpgsql volatile as $$
declare
    v        posthorn.sequence_space;
    v_system bigint;
begin
    select s.* into v from posthorn.sequence_space s for update;
    select c.system_identifier into v_system from pg_control_system() c;
    if v.system_identifier is not distinct from v_system and v.timeline is not distinct from posthorn.timeline() then return ''; end if;
    if v.system_identifier is distinct from v_system then
        delete from posthorn.event_commits;
        delete from posthorn.signals;
        delete from posthorn.xid_notes;
        update posthorn.sequence_space set trimmed_through = pg_snapshot_xmin(pg_current_snapshot());
    end if;
    delete from posthorn.boot;
    insert into posthorn.boot default values;
    update posthorn.sequence_space set system_identifier = v_system, timeline = posthorn.timeline(), vote = null, vote_began = null, electorate = null;
    return format('cluster %s, timeline %s; before: cluster %s, timeline %s', v_system, posthorn.timeline(),
                  coalesce(v.system_identifier::text, 'none'), coalesce(v.timeline, 'none'));
end
$$;

alter table posthorn.devices add column resume_epoch bigint; -- the epoch in which resume was given

-- As before, and: a nonce means nothing in an epoch in which the device has had none. After a rewind an honest device
-- knows one that the database has never seen; it is taken at its word then, once. A copy that comes after it is not.
create or replace function posthorn.hello(
    p_user text, p_device text, p_install bigint, p_resume text,
    out code text, out device_id bigint, out install_epoch bigint, out resume uuid, out epoch bigint
) language plpgsql as $$
declare
    v_dev  posthorn.devices;
    v_prev uuid;
begin
    code := '';
    select s.epoch into epoch from posthorn.sequence_space s;
    select * into v_dev from posthorn.devices d where d.user_id = p_user and d.device_name = p_device for no key update;
    if not found then
        insert into posthorn.users (user_id) values (p_user) on conflict do nothing;
        insert into posthorn.devices (user_id, device_name) values (p_user, p_device) on conflict do nothing;
        select * into v_dev from posthorn.devices d where d.user_id = p_user and d.device_name = p_device for no key update;
    end if;
    if v_dev.revoked_at is not null then code := 'UNAUTHENTICATED'; return; end if;

    device_id := v_dev.device_id;
    if p_install is null then
        install_epoch := v_dev.install_epoch + 1;
    elsif p_resume is null then
        if p_install < v_dev.install_epoch then code := 'STALE_INSTALL'; return; end if;
        install_epoch := p_install;
    elsif p_install = v_dev.install_epoch and p_resume in (v_dev.resume::text, v_dev.resume_prev::text) then
        install_epoch := p_install;
        v_prev := p_resume::uuid;
    elsif coalesce(v_dev.resume_epoch, 1) <> epoch and p_install >= v_dev.install_epoch
          and p_resume ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then
        install_epoch := p_install;
        v_prev := p_resume::uuid; -- a crash between welcome and store is no clone here either
    elsif p_install > v_dev.install_epoch then
        -- A store that is ahead of the database: the database was rewound, the install goes on as told.
        install_epoch := p_install;
    else
        install_epoch := v_dev.install_epoch + 1;
    end if;
    resume := gen_random_uuid();
    update posthorn.devices d
       set install_epoch = hello.install_epoch, resume = hello.resume, resume_prev = v_prev, resume_epoch = hello.epoch, last_seen_at = clock_timestamp()
     where d.device_id = hello.device_id;
end
$$;

-- Sessions of many devices in one transaction, in key order, so that two gateways never deadlock. Each raises the
-- generation of its device's route; a signal tells the gateway that had it before.
create function posthorn.hello_batch(p_gateway text, p_user text[], p_device text[], p_install bigint[], p_resume text[], p_connection bigint[])
returns table (n bigint, code text, device_id bigint, install_epoch bigint, resume text, epoch bigint, generation bigint, elsewhere boolean)
language plpgsql volatile as $$
declare
    r     record;
    v     record;
    v_old text;
    v_now bigint := floor(extract(epoch from clock_timestamp()) * 1000);
begin
    for r in select i.* from unnest(p_user, p_device, p_install, p_resume, p_connection) with ordinality as i (usr, device, install, resume, connection, n)
              order by i.usr, i.device, i.n loop
        select h.* into v from posthorn.hello(r.usr, r.device, r.install, r.resume) h;
        n := r.n; code := v.code; device_id := v.device_id; install_epoch := v.install_epoch; resume := v.resume::text; epoch := v.epoch;
        generation := 0; elsewhere := false;
        if v.code = '' then
            select d.gateway_id into v_old from posthorn.device_routes d where d.device_id = v.device_id; -- the device's row is locked
            elsewhere := v_old is not null and v_old <> p_gateway;
            insert into posthorn.device_routes as d (device_id, gateway_id, connection, generation)
            values (v.device_id, p_gateway, r.connection, v_now) -- the time, so that none that was taken back is given again
            on conflict on constraint device_routes_pkey do update
               set gateway_id = excluded.gateway_id, connection = excluded.connection, generation = greatest(d.generation + 1, v_now)
            returning d.generation into generation;
            if elsewhere then
                insert into posthorn.signals (kind, key, payload) values ('route', v.device_id::text, generation::text);
            end if;
        end if;
        return next;
    end loop;
end
$$;

-- Deletes what every reader has passed: rows of transactions below the id that was noted p_keep ago, and below the oldest
-- that still runs now. A reader whose snapshot reaches below trimmed_through compares heads instead. Named consumers hold
-- it back, up to p_hold.
create function posthorn.trim(p_keep interval, p_hold interval) returns xid8 language plpgsql volatile as $$
declare
    v_bound xid8;
    v_low   xid8;
begin
    if not pg_try_advisory_xact_lock(hashtextextended('posthorn.trim', 0)) then return null; end if;
    insert into posthorn.xid_notes (low) values (pg_snapshot_xmin(pg_current_snapshot())) on conflict do nothing;
    delete from posthorn.xid_notes x where x.at < clock_timestamp() - greatest(p_keep, p_hold) - interval '1 hour';
    delete from posthorn.gateways g where g.lease_until < clock_timestamp() - interval '1 day';
    select max(x.low) into v_bound from posthorn.xid_notes x where x.at < clock_timestamp() - p_keep;
    if v_bound is null then return null; end if; -- least() would leave it out
    v_bound := least(v_bound, pg_snapshot_xmin(pg_current_snapshot()));
    select min(pg_snapshot_xmin(c.position::pg_snapshot)) into v_low from posthorn.consumers c where c.position is not null;
    if v_low < v_bound then
        v_bound := greatest(v_low, coalesce((select max(x.low) from posthorn.xid_notes x where x.at < clock_timestamp() - p_hold), v_low));
    end if;
    -- The bound first: who reads by an older snapshot must learn of it from the transaction that deletes.
    update posthorn.sequence_space s set trimmed_through = v_bound where s.trimmed_through < v_bound;
    if not found then return null; end if;
    delete from posthorn.event_commits c where c.tx < v_bound;
    delete from posthorn.signals g where g.tx < v_bound;
    return v_bound;
end
$$;
