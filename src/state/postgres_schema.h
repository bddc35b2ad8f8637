// The longer SQL of PostgresStore: its tables, the statement that appends, the session's settings.
//
// kPostgresFormat counts up when the tables change; a daemon refuses a store of a format above its
// own. The tables are those of SqliteStore, in a schema of their own, and `format.writer` tells one
// daemon from the next.
#pragma once

#include <cstdint>

namespace muster::state {

inline constexpr std::int64_t kPostgresFormat = 1;

// What comes from users is bytea, not text: no encoding can refuse it, and no change of a
// collation can put an index out of order.
inline constexpr const char* kSchema = R"(
  create table muster.format(version bigint not null, writer bigint not null);
  create table muster.journal(
    revision bigint primary key, at_ms bigint not null, job bigint not null,
    checksum bigint not null, body bytea not null);
  create index journal_by_job on muster.journal(job, revision) where job != 0;
  create table muster.snapshot(
    revision bigint primary key, checksum bigint not null, body bytea not null);
  create table muster.history(
    job bigint primary key, name bytea not null, "user" bytea not null, queue bytea not null,
    "end" bytea not null, submitted_ms bigint not null, ended_ms bigint not null,
    body bytea not null);
  create index history_by_name on muster.history(name, job);
  create index history_by_user on muster.history("user", job);
  create table muster.set_aside(
    revision bigint, at_ms bigint, job bigint, checksum bigint, body bytea);
  insert into muster.format values()";

// Came later and harms no daemon that does not know it: not a new format, but made where it is
// missing.
inline constexpr const char* kAuditSchema = R"(
  create table muster.audit(
    id bigint primary key, at_ms bigint not null, who bytea not null, "from" bytea not null,
    what bytea not null, object bytea not null, queue bytea not null, before bytea not null,
    after bytea not null, checksum bigint not null);
  create index audit_by_who on muster.audit(who, id);
  create index audit_by_object on muster.audit(object, id))";

// A job that ended twice in one batch counts as it ended last.
inline constexpr const char* kAppendSql = R"(
  with written as (
    insert into muster.journal(revision, at_ms, job, checksum, body)
    select * from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bytea[])),
  audited as (
    insert into muster.audit(id, at_ms, who, "from", what, object, queue, before, after, checksum)
    select * from unnest($14::bigint[], $15::bigint[], $16::bytea[], $17::bytea[], $18::bytea[],
                         $19::bytea[], $20::bytea[], $21::bytea[], $22::bytea[], $23::bigint[]))
  insert into muster.history
  select distinct on (job) job, name, "user", queue, "end", submitted_ms, ended_ms, body
  from unnest($6::bigint[], $7::bytea[], $8::bytea[], $9::bytea[], $10::bytea[], $11::bigint[],
              $12::bigint[], $13::bytea[]) with ordinality
    as ended(job, name, "user", queue, "end", submitted_ms, ended_ms, body, place)
  order by job, place desc
  on conflict (job) do update set name = excluded.name, "user" = excluded."user",
    queue = excluded.queue, "end" = excluded."end", submitted_ms = excluded.submitted_ms,
    ended_ms = excluded.ended_ms, body = excluded.body)";

// A stronger synchronous_commit than `on` is left as the administrator set it. The keepalives are
// the server's: it must notice that our machine is gone, or the lock would stay taken for hours.
inline constexpr const char* kSettings = R"(
  set client_min_messages = error;
  select set_config('synchronous_commit', 'on', false)
    where current_setting('synchronous_commit') != 'remote_apply';
  set tcp_keepalives_idle = 10;
  set tcp_keepalives_interval = 5;
  set tcp_keepalives_count = 3;
)";

// Waits a moment instead of only trying: the server may still be ending the session before ours,
// of a daemon that was killed or of a connection that we closed ourselves.
inline constexpr const char* kLock =
    "set lock_timeout = '1s'; select pg_advisory_lock(x'6d7573746572'::bigint); "
    "set lock_timeout = '10s'";
inline constexpr const char* kLockNotAvailable = "55P03";

}  // namespace muster::state
