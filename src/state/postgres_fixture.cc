#include "state/postgres_fixture.h"

#include <pwd.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "state/postgres_session.h"

namespace muster::state {
namespace {

constexpr const char* kPrograms = "/usr/lib/postgresql/15/bin";

}  // namespace

PostgresServer& PostgresServer::Get() {
  static auto* const server =
      static_cast<PostgresServer*>(::testing::AddGlobalTestEnvironment(new PostgresServer));
  return *server;
}

bool PostgresServer::Command(const std::string& program, const std::string& arguments) const {
  const std::string line = "cd " + folder_ + " && exec " + as_ + kPrograms + "/" + program +
                           " -D " + folder_ + "/data " + arguments + " >>" + folder_ +
                           "/commands.log 2>&1";
  return std::system(line.c_str()) == 0;  // NOLINT(cert-env33-c): every word of it is ours
}

bool PostgresServer::Control(const std::string& action) const {
  return Command("pg_ctl", "-w -t 60 -l " + folder_ + "/server.log " + action);
}

std::string PostgresServer::Start() {
  if (running_) return {};
  if (::access((std::string(kPrograms) + "/postgres").c_str(), X_OK) != 0) {
    return std::string("no PostgreSQL server in ") + kPrograms + " (Debian: postgresql-15)";
  }
  std::string name = (std::filesystem::temp_directory_path() / "muster-pg-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) return "no temporary folder";
  folder_ = name;
  if (::geteuid() == 0) {
    const passwd* user = ::getpwnam("postgres");
    if (user == nullptr) user = ::getpwnam("nobody");
    if (user == nullptr) return "the server refuses to run as root, and there is nobody else";
    as_ = "setpriv --reuid=" + std::to_string(user->pw_uid) +
          " --regid=" + std::to_string(user->pw_gid) + " --clear-groups ";
    if (::chown(folder_.c_str(), user->pw_uid, user->pw_gid) != 0) return "chown failed";
  }
  if (!Command("initdb", "--no-sync --no-locale -E UTF8 -A trust -U muster")) {
    return "initdb failed: see " + folder_;
  }
  std::ofstream(folder_ + "/data/postgresql.conf", std::ios::app)
      << "listen_addresses = ''\nunix_socket_directories = '" << folder_
      << "'\nshared_buffers = 16MB\nmax_connections = 20\n";
  if (!Control("start")) return "the server does not start: see " + folder_;
  running_ = true;
  return {};
}

void PostgresServer::TearDown() {
  if (!running_) return;
  running_ = false;
  EXPECT_TRUE(Control("stop -m immediate"));
  std::filesystem::remove_all(folder_);
}

std::string PostgresServer::Url(const std::string& database) const {
  return "postgresql://muster@/" + database + "?host=" + folder_;
}

std::string PostgresServer::NewDatabase() {
  const std::string name = "store" + std::to_string(++databases_);
  EXPECT_EQ(Sql(Url("postgres"), "create database " + name), "");
  return Url(name);
}

std::string PostgresServer::Sql(const std::string& url, const std::string& script) {
  const auto api = LoadLibpq();
  if (!api) return api.error().message;
  auto session = PgSession::Connect(*api, url);
  if (!session) return session.error().message;
  const auto run = (*session)->Run(script);
  return run ? "" : run.error().message;
}

std::string PostgresServer::EndSessions(const std::string& url) {
  return Sql(url,
             "select pg_terminate_backend(pid, 10000) from pg_stat_activity"
             " where datname = current_database() and pid != pg_backend_pid()");
}

}  // namespace muster::state
