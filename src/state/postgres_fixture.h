// PostgresServer: a real server for the tests, started by the first test that wants one.
//
// It lives in a temporary folder, listens on a Unix socket there and nowhere else, and is stopped
// without ceremony when the test program ends. Each test gets a database of its own. The server
// refuses to run as root, so root starts it as `postgres` or `nobody`. Costs about a second.
#pragma once

#include <gtest/gtest.h>

#include <string>

namespace muster::state {

class PostgresServer : public ::testing::Environment {
 public:
  static PostgresServer& Get();  // registered with GoogleTest, which ends it

  // Empty, or why there can be no server here.
  std::string Start();
  void TearDown() override;

  std::string NewDatabase();                                                  // its URL
  static std::string Sql(const std::string& url, const std::string& script);  // empty, or the error
  std::string EndSessions(const std::string& url);  // all but the caller's; returns when they ended
  bool Control(const std::string& action) const;    // "restart -m fast"; waits until it is done

 private:
  bool Command(const std::string& program, const std::string& arguments) const;
  std::string Url(const std::string& database) const;

  std::string folder_;
  std::string as_;  // in front of a command
  bool running_ = false;
  int databases_ = 0;
};

}  // namespace muster::state
