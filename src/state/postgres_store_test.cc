// What only a store on a server has to prove: connections that break, and who may write after it.
#include "state/postgres_store.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "state/libpq.h"
#include "state/postgres_fixture.h"

namespace muster::state {
namespace {

class PostgresStoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto missing = server_.Start();
    if (!missing.empty()) GTEST_SKIP() << missing;
    url_ = server_.NewDatabase();
  }

  static std::vector<Record> One(std::uint64_t revision) { return {{revision, 1, 0, "body"}}; }
  static std::vector<std::uint64_t> Revisions(Store& store) {
    std::vector<std::uint64_t> out;
    RecordQuery all;
    all.limit = 1'000'000;
    const auto read = store.Read(all, [&](const Record& record) -> Result<void> {
      out.push_back(record.revision);
      return {};
    });
    EXPECT_TRUE(read) << read.error().message;
    return out;
  }
  void Sql(const std::string& script) { EXPECT_EQ(PostgresServer::Sql(url_, script), ""); }

  PostgresServer& server_ = PostgresServer::Get();
  std::string url_;
};

TEST_F(PostgresStoreTest, ARestartOfTheServerLosesNothingAndDoublesNothing) {
  auto store = OpenPostgres(url_).value();
  ASSERT_TRUE(store->Append(One(1), {}));
  ASSERT_TRUE(server_.Control("restart -m fast"));
  const auto first = store->Append(One(2), {});
  ASSERT_FALSE(first);  // its connection ended with the server
  EXPECT_EQ(first.error().code, ErrorCode::kUnavailable);
  EXPECT_FALSE(first.error().hint.empty());
  ASSERT_TRUE(store->Append(One(2), {}));
  ASSERT_TRUE(store->Append(One(3), {}));
  EXPECT_EQ(Revisions(*store), (std::vector<std::uint64_t>{1, 2, 3}));
  EXPECT_FALSE(OpenPostgres(url_));  // the lock was taken again as well
}

TEST_F(PostgresStoreTest, WhatWasAcknowledgedOutlivesACrashOfTheServer) {
  auto store = OpenPostgres(url_).value();
  std::atomic<std::uint64_t> acknowledged = 0;
  std::thread killer([&] {
    for (auto seen = acknowledged.load(); seen < 100; seen = acknowledged.load()) {
      acknowledged.wait(seen);
    }
    EXPECT_TRUE(server_.Control("stop -m immediate"));
  });
  Result<void> written;
  for (std::uint64_t next = 1; written; next += 2) {
    written = store->Append(std::vector<Record>{{next, 1, 0, "a"}, {next + 1, 1, 0, "b"}}, {});
    if (!written && acknowledged < 100) acknowledged = 100;
    if (written) acknowledged = next + 1;
    acknowledged.notify_one();
  }
  killer.join();
  EXPECT_EQ(written.error().code, ErrorCode::kUnavailable) << written.error().message;
  ASSERT_TRUE(server_.Control("start"));
  const auto there = Revisions(*store);
  for (std::size_t i = 0; i < there.size(); ++i) ASSERT_EQ(there[i], i + 1);
  // The pair that was in flight is there whole or not at all.
  EXPECT_GE(there.size(), acknowledged);
  EXPECT_LE(there.size(), acknowledged + 2);
  EXPECT_EQ(there.size() % 2, 0U);
  EXPECT_TRUE(store->Append(One(there.size() + 1), {}));
}

TEST_F(PostgresStoreTest, AServerThatIsDownIsAnErrorUntilItIsBack) {
  auto store = OpenPostgres(url_).value();
  ASSERT_TRUE(server_.Control("stop -m fast"));
  for (int i = 0; i < 3; ++i) {
    const auto failed = store->Append(One(1), {});
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().code, ErrorCode::kUnavailable);
  }
  EXPECT_FALSE(store->LoadSnapshot());
  EXPECT_FALSE(store->Repair());  // what cannot be read is not cut off
  ASSERT_TRUE(server_.Control("start"));
  EXPECT_TRUE(store->Append(One(1), {}));
}

TEST_F(PostgresStoreTest, ADaemonThatWasReplacedNeverWritesAgain) {
  auto old = OpenPostgres(url_).value();
  ASSERT_TRUE(old->Append(One(1), {}));
  ASSERT_EQ(server_.EndSessions(url_), "");
  {
    auto other = OpenPostgres(url_).value();
    EXPECT_FALSE(old->Append(One(2), {}));
    const auto while_held = old->Append(One(2), {});
    ASSERT_FALSE(while_held);
    EXPECT_EQ(while_held.error().code, ErrorCode::kConflict);
    ASSERT_TRUE(other->Append(One(2), {}));
  }
  // Also when the other is gone: this one does not know what it wrote.
  const auto later = old->Append(One(2), {});
  ASSERT_FALSE(later);
  EXPECT_EQ(later.error().code, ErrorCode::kConflict);
  EXPECT_NE(later.error().message.find("another musterd has taken over"), std::string::npos);
  EXPECT_FALSE(old->LoadSnapshot());
}

TEST_F(PostgresStoreTest, ADaemonThatWasReplacedAndOutlivedItsSuccessorNeverWritesAgain) {
  auto old = OpenPostgres(url_).value();
  ASSERT_EQ(server_.EndSessions(url_), "");
  ASSERT_TRUE(OpenPostgres(url_));  // it wrote nothing, and might have
  EXPECT_FALSE(old->Append(One(1), {}));
  const auto later = old->Append(One(1), {});
  ASSERT_FALSE(later);
  EXPECT_EQ(later.error().code, ErrorCode::kConflict);
}

TEST_F(PostgresStoreTest, AServerThatForgotAnAcknowledgedRecordIsNotedOnReconnection) {
  auto store = OpenPostgres(url_).value();
  ASSERT_TRUE(store->Append(One(1), {}));
  ASSERT_TRUE(store->Append(One(2), {}));
  Sql("delete from muster.journal where revision = 2");
  ASSERT_EQ(server_.EndSessions(url_), "");
  EXPECT_FALSE(store->Append(One(3), {}));
  const auto later = store->Append(One(3), {});
  ASSERT_FALSE(later);
  EXPECT_EQ(later.error().code, ErrorCode::kConflict);
  EXPECT_NE(later.error().message.find("ends at revision 1"), std::string::npos);
}

// A commit that waits for a replica is there already; ending its session keeps the answer back.
TEST_F(PostgresStoreTest, ACommitWhoseAnswerWasLostIsFoundByReadingAgain) {
  auto store = OpenPostgres(url_).value();
  Sql("alter system set synchronous_standby_names = 'nobody'");
  Sql("select pg_reload_conf()");
  std::thread cutter([this] {
    Sql("do $$ declare waiting int; begin loop"
        " perform pg_stat_clear_snapshot();"
        " select pid into waiting from pg_stat_activity where wait_event = 'SyncRep';"
        " exit when found; perform pg_sleep(0.001); end loop;"
        " perform pg_terminate_backend(waiting, 10000); end $$");
  });
  // The setting takes effect a moment later, so that some may succeed before.
  std::vector<std::uint64_t> sent;
  for (Result<void> written; written;) {
    sent.push_back(sent.size() + 1);
    written = store->Append(One(sent.back()), {}, std::vector<AuditRow>{{.who = "ana"}});
  }
  cutter.join();
  EXPECT_EQ(Revisions(*store), sent);  // with the one for which Append had failed
  Sql("alter system reset synchronous_standby_names");
  Sql("select pg_reload_conf()");
  const auto twice = store->Append(One(sent.back()), {});
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.error().code, ErrorCode::kConflict);
  EXPECT_TRUE(store->Append(One(sent.size() + 1), {}, std::vector<AuditRow>{{.who = "ben"}}));
  EXPECT_EQ(store->Audit({.who = "ana", .limit = 1'000'000}).value().size(), sent.size());
  EXPECT_EQ(store->Audit({}).value().front().id, sent.size() + 1);
}

TEST_F(PostgresStoreTest, AFullDiskIsAnErrorThatEndsByItself) {
  auto store = OpenPostgres(url_).value();
  Sql("create function muster.full() returns trigger language plpgsql as $$ begin"
      " raise exception 'No space left on device' using errcode = '53100'; end $$;"
      "create trigger full_disk before insert on muster.journal"
      " for each row execute function muster.full()");
  const auto full = store->Append(One(1), {});
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code, ErrorCode::kUnavailable);
  EXPECT_NE(full.error().hint.find("make room"), std::string::npos);
  Sql("drop trigger full_disk on muster.journal");
  EXPECT_TRUE(store->Append(One(1), {}));
}

TEST_F(PostgresStoreTest, AReadOnlyServerCanBeReadAndRefusesToBeWritten) {
  auto store = OpenPostgres(url_).value();
  ASSERT_TRUE(store->Append(One(1), {}));
  Sql("do $$ begin execute format('alter database %I set default_transaction_read_only = on',"
      " current_database()); end $$");
  ASSERT_EQ(server_.EndSessions(url_), "");
  EXPECT_FALSE(store->Append(One(2), {}));
  EXPECT_EQ(Revisions(*store), (std::vector<std::uint64_t>{1}));
  const auto refused = store->Append(One(2), {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUnavailable);
  EXPECT_NE(refused.error().hint.find("writable"), std::string::npos);
}

TEST_F(PostgresStoreTest, AStoreOfANewerFormatIsRefused) {
  ASSERT_TRUE(OpenPostgres(url_));
  Sql("update muster.format set version = 99");
  const auto store = OpenPostgres(url_);
  ASSERT_FALSE(store.has_value());
  EXPECT_EQ(store.error().code, ErrorCode::kConflict);
  EXPECT_NE(store.error().message.find("newer musterd"), std::string::npos);
}

// As the first musterd made it.
TEST_F(PostgresStoreTest, AStoreFromBeforeTheAuditTrailGetsOne) {
  Sql(R"(
    create schema muster;
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
    insert into muster.format values(1, 3);
    insert into muster.journal values(1, 1, 0, )" +
      std::to_string(Checksum(One(1).front())) + ", 'body')");
  for (std::uint64_t next : {2U, 3U}) {
    auto store = OpenPostgres(url_).value();
    ASSERT_TRUE(store->Append(One(next), {}, std::vector<AuditRow>{{.who = "ana"}}));
    EXPECT_EQ(Revisions(*store).size(), next);
    EXPECT_EQ(store->Audit({}).value().size(), next - 1);
  }
}

TEST_F(PostgresStoreTest, ASleepyCommitIsMadeDurable) {
  Sql("do $$ begin execute format('alter database %I set synchronous_commit = off',"
      " current_database()); end $$");
  auto store = OpenPostgres(url_).value();
  Sql("create function muster.strict() returns trigger language plpgsql as $$ begin"
      " if current_setting('synchronous_commit') != 'on' then raise 'not durable'; end if;"
      " return new; end $$;"
      "create trigger strict before insert on muster.journal"
      " for each row execute function muster.strict()");
  const auto written = store->Append(One(1), {});
  EXPECT_TRUE(written) << written.error().message;
}

TEST(PostgresLibraryTest, AMissingLibrarySaysWhatToInstall) {
  const auto api = LoadLibpq("libpq-that-is-not-there.so.5");
  ASSERT_FALSE(api.has_value());
  EXPECT_EQ(api.error().code, ErrorCode::kUnavailable);
  EXPECT_NE(api.error().hint.find("libpq5"), std::string::npos);
}

TEST(PostgresLibraryTest, AnotherLibraryIsNotTakenForIt) {
  const auto api = LoadLibpq("libc.so.6");
  ASSERT_FALSE(api.has_value());
  EXPECT_EQ(api.error().code, ErrorCode::kUnavailable);
}

TEST(PostgresLibraryTest, AnErrorDoesNotTellThePassword) {
  const auto api = LoadLibpq();
  if (!api) GTEST_SKIP() << api.error().message;
  for (const char* url : {"postgresql://ana:secret@[::1/db", "postgresql://ana:secret%zz@/db",
                          "postgresql://ana:secret@/db?host=/no"}) {
    const auto store = OpenPostgres(url);
    ASSERT_FALSE(store.has_value());
    EXPECT_EQ(store.error().code, ErrorCode::kUnavailable);
    EXPECT_EQ(store.error().message.find("secret"), std::string::npos) << store.error().message;
  }
}

}  // namespace
}  // namespace muster::state
