// Workers that have a terminal, in the built program.
#include "shim/terminal.h"

#include <gmock/gmock.h>

#include <csignal>
#include <fstream>

#include "shim/shim_fixture.h"

namespace muster::shim {
namespace {

using contract::Tell;
using testing::HasSubstr;

class TerminalTest : public ShimTest {
 protected:
  void SetUp() override {
    ShimTest::SetUp();
    order_.terminal = true;
  }
  static Tell Stop(std::int64_t grace_ms) { return {Tell::Kind::kStop, grace_ms, "", ""}; }
};

TEST_F(TerminalTest, AllThreeStreamsAreOneTerminalOfTheOrderedSizeAndGoToTheLog) {
  order_.rows = 33;
  order_.cols = 101;
  StartShell("test -t 0 && test -t 1 && test -t 2 && stty size; echo err >&2; echo $TERM; exit 7");
  EXPECT_EQ(EndWithRecord().exit_code, 7);
  EXPECT_EQ(Text("log/0.out"), "33 101\r\nerr\r\nxterm-256color\r\n");
  EXPECT_EQ(Text("log/0.err"), "-");
}

TEST_F(TerminalTest, TheWorkerLeadsASessionWithIt) {
  Start({"python3", "-c",
         "import os; t = os.open('/dev/tty', os.O_RDWR); "
         "print(os.getsid(0) == os.getpid() == os.tcgetpgrp(t))"});
  EXPECT_EQ(EndWithRecord().exit_code, 0);
  EXPECT_EQ(Text("log/0.out"), "True\r\n");
}

TEST_F(TerminalTest, ItBelongsToTheWorkersUser) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can change the user";
  order_.user = contract::User{65534, 65533, {}};
  StartShell("stat -c %u $(tty)");
  EXPECT_EQ(EndWithRecord().failure, "");
  EXPECT_EQ(Text("log/0.out"), "65534\r\n");
}

TEST_F(TerminalTest, AllOfTheLastOutputIsInTheLogAndLogsAreRotated) {
  order_.log_bytes = 6'000;
  order_.log_files = 3;
  StartShell("seq 1000 2999");
  EXPECT_EQ(EndWithRecord().log_bytes_dropped, 0);
  EXPECT_THAT(Text("log/0.out"), testing::EndsWith("2998\r\n2999\r\n"));
  EXPECT_THAT(Text("log/0.out"), testing::StartsWith("2000\r\n"));
  EXPECT_THAT(Text("log/0.out.1"), testing::StartsWith("1000\r\n"));
  EXPECT_THAT(Text("log/0.out.1"), testing::EndsWith("1999\r\n"));
}

TEST_F(TerminalTest, AWorkerThatClosesItsStreamsGoesOn) {
  StartShell("exec <&- >&- 2>&-; sleep 0.01; (echo again) >/dev/tty; exit 3");
  EXPECT_EQ(EndWithRecord().exit_code, 3);
  EXPECT_EQ(Text("log/0.out"), "again\r\n");
}

TEST_F(TerminalTest, TheCheckpointSignalReachesTheForegroundAndNotItsShell) {
  order_.checkpoint_signal = "SIGUSR1";
  std::ofstream(dir_ / "train") << "trap 'echo saved; exit 0' USR1; touch $D/up\n"
                                   "while :; do sleep 1000 & wait; done\n";
  Start({"bash", "-c", "set -m; sh $D/train; echo shell lives; exit 5"});
  Await("up");
  Send(Tell{});
  const auto exit = EndWithRecord();
  EXPECT_EQ(exit.exit_code, 5);
  EXPECT_TRUE(exit.stopped);
  EXPECT_THAT(Text("log/0.out"), testing::EndsWith("saved\r\nshell lives\r\n"));
}

TEST_F(TerminalTest, AShellAtItsPromptIsHungUpAndNotKilled) {
  order_.env["PROMPT_COMMAND"] = "touch $D/up";
  Start({"bash", "--norc", "-i"});
  Await("up");
  Send(Stop(3'600'000));
  const auto exit = EndWithRecord();
  EXPECT_EQ(exit.signal, SIGHUP);
  EXPECT_TRUE(exit.stopped);
  EXPECT_FALSE(exit.killed);
}

TEST_F(TerminalTest, AStoppedJobOfAShellIsWokenToHearOfTheEnd) {
  order_.env["PROMPT_COMMAND"] = "sh $D/work/job";
  std::ofstream(dir_ / "work/job") << "trap 'touch $D/heard; exit 0' TERM; touch $D/up\n"
                                      "kill -STOP $$; while :; do sleep 0.01; done\n";
  Start({"bash", "--norc", "-i"});
  Await("up");
  Send(Stop(3'600'000));
  EXPECT_FALSE(EndWithRecord().killed);
  EXPECT_TRUE(fs::exists(dir_ / "heard"));
}

TEST_F(TerminalTest, WhoIgnoresEverythingIsKilledWithItsJobs) {
  order_.term_grace_ms = 20;
  StartShell("trap '' TERM HUP; set -m; sleep 1000 & touch $D/up; sleep 1000; sleep 1000");
  Await("up");
  Send(Stop(20));
  EXPECT_EQ(EndWithRecord().signal, SIGKILL);
}

TEST_F(TerminalTest, CleaningUpNeedsNoTerminal) {
  order_.cleanup = {"sh", "-c", "test -t 2 || echo none >$D/state"};
  StartShell("exit 0");
  EndWithRecord();
  EXPECT_EQ(Text("state"), "none\n");
}

}  // namespace
}  // namespace muster::shim
