// The built program, run as the daemon runs it, around real workers.
#include "shim/shim.h"

#include <gmock/gmock.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <csignal>
#include <cstring>
#include <fstream>

#include "base/tree.h"
#include "shim/shim_fixture.h"

namespace muster::shim {
namespace {

using contract::Tell;
using testing::HasSubstr;
using testing::StartsWith;

TEST_F(ShimTest, CleansUpWhenNothingOfTheWorkerLivesAndBeforeItsEndIsTold) {
  order_.cleanup = {
      "sh", "-c",
      "kill -0 $(cat $D/pid) 2>/dev/null && echo alive >&2; "
      "test -e $D/spool/17.0.2.exit && echo told >&2; echo clean >$D/state; echo hm >&2"};
  StartShell("sleep 600 & echo $! >$D/pid; exit 7");
  EXPECT_EQ(EndWithRecord().exit_code, 7);
  EXPECT_EQ(Text("state"), "clean\n");
  EXPECT_EQ(Text("log/0.err"), "hm\n");
  EXPECT_EQ(Text("log/0.out"), "-");
}

TEST_F(ShimTest, RecordsStartAndExitCode) {
  StartShell("echo to out; echo to err >&2; exit 7");
  const auto exit = EndWithRecord();
  EXPECT_EQ(exit.exit_code, 7);
  EXPECT_EQ(exit.signal, 0);
  EXPECT_FALSE(exit.stopped || exit.killed || exit.oom);
  EXPECT_EQ(exit.failure, "");
  EXPECT_GT(exit.max_rss_bytes, 0);
  EXPECT_GE(exit.ended_ms, exit.started_ms);
  const auto start = Started();
  EXPECT_EQ(start.pid, exit.pid);
  EXPECT_EQ(start.limits, "none asked");
  EXPECT_EQ(Text("log/0.out"), "to out\n");
  EXPECT_EQ(Text("log/0.err"), "to err\n");
  EXPECT_TRUE(fs::exists(dir_ / "run/begun"));
  EXPECT_FALSE(fs::exists(dir_ / "run/ctl"));
  EXPECT_FALSE(fs::exists(dir_ / "run/worker.sock"));
}

TEST_F(ShimTest, RecordsTheSignalThatEndedIt) {
  StartShell("kill -SEGV $$");
  const auto exit = EndWithRecord();
  EXPECT_EQ(exit.signal, SIGSEGV);
  EXPECT_EQ(exit.exit_code, -1);
}

TEST_F(ShimTest, AProgramThatDoesNotExistIsNamed) {
  Start({"trian.py"});
  const auto exit = EndWithRecord();
  EXPECT_EQ(exit.failure, "cannot run \"trian.py\": no such file or directory");
  EXPECT_EQ(exit.exit_code, 127);
  EXPECT_FALSE(fs::exists(dir_ / "spool/17.0.2.start"));
}

TEST_F(ShimTest, AFileThatIsNoProgramAndAMissingInterpreterAreToldApart) {
  Start({dir_ / "work"});
  EXPECT_EQ(EndWithRecord().failure,
            "cannot run \"" + (dir_ / "work").string() + "\": permission denied");
  fs::remove(dir_ / "run/begun");
  const auto script = (dir_ / "script").string();
  std::ofstream(script) << "#!/no/such/python\n";
  fs::permissions(script, fs::perms::owner_all);
  Start({script});
  EXPECT_EQ(EndWithRecord().failure,
            "cannot run \"" + script + "\": the interpreter in its first line does not exist");
}

TEST_F(ShimTest, AFolderThatDoesNotExistIsNamed) {
  order_.workdir = dir_ / "nowhere";
  Start({"true"});
  const auto exit = EndWithRecord();
  EXPECT_EQ(exit.failure, "cannot enter \"" + order_.workdir + "\": no such file or directory");
  EXPECT_EQ(exit.exit_code, 126);
}

TEST_F(ShimTest, TheWorkerHasItsFolderItsEnvironmentAndNothingElse) {
  fs::create_directories(dir_ / "bin");
  const auto tool = dir_ / "bin/tool";
  std::ofstream(tool) << "#!/bin/sh\necho \"$PWD|$A|$MUSTER_SOCKET\"\n"
                         "/bin/ls /proc/self/fd | /usr/bin/tr '\\n' ' '\n"
                         "/usr/bin/env | /usr/bin/grep -c =\n/bin/cat; umask\n"
                         "/bin/grep -E 'Sig(Blk|Ign)' /proc/self/status\n";
  fs::permissions(tool, fs::perms::owner_all);
  order_.env = {{"PATH", (dir_ / "bin").string() + ":/bin"}, {"A", "b c"}};
  Start({"tool"});
  EXPECT_EQ(EndWithRecord().failure, "");
  // The standard streams and the folder that ls reads; PATH, A, MUSTER_SOCKET, the shell's PWD.
  EXPECT_EQ(Text("log/0.out"), order_.workdir + "|b c|" + order_.run_dir +
                                   "/worker.sock\n0 1 2 3 4\n0022\n"
                                   "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
}

TEST_F(ShimTest, RunsAsAnotherUserWhoMayUseTheSocket) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can change the user";
  order_.user = contract::User{65534, 65533, {65532}};
  StartShell("id -u; id -G; stat -c '%u %a' $MUSTER_SOCKET");
  EXPECT_EQ(EndWithRecord().failure, "");
  EXPECT_EQ(Text("log/0.out"), "65534\n65533 65532\n65534 600\n");
  struct stat facts {};
  ASSERT_EQ(stat((dir_ / "log/0.out").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_uid, 65534U);
}

TEST_F(ShimTest, CoresThatDoNotExistAreAFailureAndOthersAreKept) {
  order_.cores = {0};
  StartShell("grep Cpus_allowed_list /proc/self/status");
  EXPECT_EQ(EndWithRecord().failure, "");
  EXPECT_EQ(Text("log/0.out"), "Cpus_allowed_list:\t0\n");
  EXPECT_EQ(Started().limits, "affinity");
  fs::remove(dir_ / "run/begun");
  order_.cores = {60'000};
  Start({"true"});
  EXPECT_THAT(EndWithRecord().failure, StartsWith("cannot bind it to core 60000"));
}

TEST_F(ShimTest, LogsAreRotated) {
  order_.rank = 3;
  order_.log_bytes = 1000;
  order_.log_files = 3;
  StartShell("seq 1000 1999");
  const auto exit = EndWithRecord();
  EXPECT_THAT(Text("log/3.out"), StartsWith("1800\n"));
  EXPECT_THAT(Text("log/3.out.1"), StartsWith("1600\n"));
  EXPECT_THAT(Text("log/3.out.2"), StartsWith("1400\n"));
  EXPECT_FALSE(fs::exists(dir_ / "log/3.out.3"));
  EXPECT_EQ(exit.log_bytes_dropped, 0);
}

TEST_F(ShimTest, ADetachedGrandchildDoesNotOutliveTheWorker) {
  StartShell(
      "setsid sh -c '(echo $$ > $D/pid.tmp; mv $D/pid.tmp $D/pid; exec sleep 1000) &' &"
      "while [ ! -e $D/pid ]; do sleep 0.01; done; exit 0");
  EXPECT_EQ(EndWithRecord().exit_code, 0);
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const auto env = ReadFile((entry.path() / "environ").string()).value_or("");
    EXPECT_THAT(env, testing::Not(HasSubstr("D=" + dir_.string()))) << entry.path();
  }
}

TEST_F(ShimTest, TheCheckpointSignalIsAChanceToEndWell) {
  order_.checkpoint_signal = "SIGUSR1";
  StartShell("trap 'echo saved; exit 0' USR1; touch $D/up; while :; do sleep 1000 & wait; done");
  Await("up");
  Send(Tell{});
  const auto exit = EndWithRecord();
  EXPECT_EQ(exit.exit_code, 0);
  EXPECT_TRUE(exit.stopped);
  EXPECT_FALSE(exit.killed);
  EXPECT_EQ(Text("log/0.out"), "saved\n");
}

TEST_F(ShimTest, WithoutACheckpointSignalSigtermComesAtOnce) {
  StartShell("trap 'exit 3' TERM; touch $D/up; while :; do sleep 1000 & wait; done");
  Await("up");
  Send(Tell{});
  const auto exit = EndWithRecord();
  EXPECT_EQ(exit.exit_code, 3);
  EXPECT_TRUE(exit.stopped);
}

TEST_F(ShimTest, WhoIgnoresEverythingIsKilledWithItsChildren) {
  order_.checkpoint_signal = "SIGUSR1";
  order_.term_grace_ms = 20;
  StartShell("trap '' TERM USR1; touch $D/up; sleep 1000; sleep 1000");
  Await("up");
  Send(Tell{Tell::Kind::kStop, 20, "", ""});
  const auto exit = EndWithRecord();
  EXPECT_EQ(exit.signal, SIGKILL);
  EXPECT_TRUE(exit.stopped);
  EXPECT_TRUE(exit.killed);
}

TEST_F(ShimTest, KillDoesNotAskAndSignalsArePassedOn) {
  StartShell("trap 'touch $D/usr2' USR2; trap '' TERM; touch $D/up; while :; do sleep 0.01; done");
  Await("up");
  Send(Tell{Tell::Kind::kSignal, -1, "SIGUSR2", ""});
  Await("usr2");
  Send(Tell{Tell::Kind::kKill, -1, "", ""});
  EXPECT_EQ(EndWithRecord().signal, SIGKILL);
}

TEST_F(ShimTest, SigtermToTheShimStopsTheWorker) {
  StartShell("trap 'exit 4' TERM; touch $D/up; while :; do sleep 1000 & wait; done");
  Await("up");
  kill(shim_, SIGTERM);
  EXPECT_EQ(EndWithRecord().exit_code, 4);
}

TEST_F(ShimTest, TheWorkerDiesWithItsShim) {
  StartShell("sleep 1000");
  const auto start = Started();
  const Handle worker(static_cast<int>(syscall(SYS_pidfd_open, start.pid, 0)));
  ASSERT_TRUE(worker);
  kill(shim_, SIGKILL);
  pollfd end{worker.get(), POLLIN, 0};
  EXPECT_EQ(poll(&end, 1, -1), 1);
  End();
  EXPECT_TRUE(LockIsFree());
  EXPECT_TRUE(fs::exists(dir_ / "run/begun"));
  EXPECT_FALSE(fs::exists(dir_ / "spool/17.0.2.exit"));
}

TEST_F(ShimTest, TheLockIsHeldUntilTheExitRecordIsThere) {
  Start({"sleep", "1000"});
  Started();
  EXPECT_FALSE(LockIsFree());
  const Handle lock(open((dir_ / "run/lock").c_str(), O_RDWR | O_CLOEXEC));
  Send(Tell{Tell::Kind::kKill, -1, "", ""});
  EXPECT_EQ(flock(lock.get(), LOCK_EX), 0);
  EXPECT_TRUE(fs::exists(dir_ / "spool/17.0.2.exit"));
  EndWithRecord();
}

TEST_F(ShimTest, TheRecordArrivesWhenTheSpoolCanBeWrittenAgain) {
  fs::remove(dir_ / "spool");
  StartShell("touch $D/ran; exit 5");
  Await("ran");
  EXPECT_FALSE(LockIsFree());
  fs::create_directory(dir_ / "spool");
  EXPECT_EQ(EndWithRecord().exit_code, 5);
  EXPECT_EQ(Started().launch, "17.0.2") << "kept as well";
  EXPECT_EQ(std::distance(fs::directory_iterator(dir_ / "spool"), fs::directory_iterator()), 2);
}

TEST_F(ShimTest, ALaunchThatWasBegunIsNotRunTwice) {
  std::ofstream(dir_ / "run/begun").flush();
  StartShell("touch $D/ran");
  EXPECT_EQ(WEXITSTATUS(End()), ExitStatus(ErrorCode::kConflict));
  EXPECT_FALSE(fs::exists(dir_ / "ran"));
  EXPECT_FALSE(fs::exists(dir_ / "spool/17.0.2.exit"));
}

TEST_F(ShimTest, WithoutItsRunFolderTheWorkerIsNotStarted) {
  order_.run_dir = dir_ / "other";
  StartShell("touch $D/ran");
  EXPECT_EQ(EndWithRecord().failure,
            "cannot enter \"" + order_.run_dir + "\": no such file or directory");
  EXPECT_FALSE(fs::exists(dir_ / "ran"));
}

TEST_F(ShimTest, AFullDiskCostsOutputAndNotTheWorker) {
  if (mount("tmpfs", (dir_ / "log").c_str(), "tmpfs", 0, "size=128k") != 0) {
    GTEST_SKIP() << "cannot mount a small file system: " << std::strerror(errno);
  }
  mkfifo((dir_ / "go").c_str(), 0600);
  std::ofstream(dir_ / "log/filler") << std::string(100'000, 'f');
  StartShell(
      "head -c 300000 /dev/zero | tr '\\0' x; echo; touch $D/full; read go < $D/go; echo after");
  Await("full");
  fs::remove(dir_ / "log/filler");
  std::ofstream(dir_ / "go") << "go\n";
  const auto exit = EndWithRecord();
  const auto log = Text("log/0.out");
  umount((dir_ / "log").c_str());
  EXPECT_EQ(exit.exit_code, 0);
  EXPECT_GT(exit.log_bytes_dropped, 0);
  EXPECT_EQ(exit.log_bytes_dropped + std::count(log.begin(), log.end(), 'x'), 300'001);
  EXPECT_THAT(log, HasSubstr(std::to_string(exit.log_bytes_dropped) +
                             " bytes of output were lost here: no space left on device]\n"));
  EXPECT_THAT(log, testing::EndsWith("after\n"));
}

TEST_F(ShimTest, MemoryBeyondTheLimitIsKnownAsSuch) {
  order_.memory_bytes = 48 << 20;
  order_.cpu_milli = 1'500;
  order_.max_processes = 50;
  StartShell("head -c 200000000 /dev/zero | tail | wc -c");
  const auto exit = EndWithRecord();
  const auto limits = Started().limits;
  if (!limits.starts_with("cgroup")) {
    GTEST_SKIP() << "no cgroup here, so no limit that the kernel reports: " << limits;
  }
  EXPECT_TRUE(exit.oom);
  EXPECT_FALSE(fs::exists(fs::path(kCgroupBase) / "memory" / order_.cgroup_root / "17.0.2"));
}

TEST_F(ShimTest, WithinItsLimitsNothingIsReported) {
  order_.memory_bytes = 512 << 20;
  order_.cpu_milli = 500;
  order_.cpu_is_weight = true;
  StartShell("cat /proc/self/cgroup");
  const auto exit = EndWithRecord();
  const auto limits = Started().limits;
  if (!limits.starts_with("cgroup")) GTEST_SKIP() << "no cgroup here: " << limits;
  EXPECT_FALSE(exit.oom);
  EXPECT_THAT(Text("log/0.out"), HasSubstr("/" + order_.cgroup_root + "/17.0.2"));
}

TEST_F(ShimTest, WithoutACgroupMemoryIsBoundedByRlimit) {
  order_.cgroup_root.clear();
  order_.memory_bytes = 64 << 20;
  StartShell("ulimit -d");
  EXPECT_EQ(EndWithRecord().exit_code, 0);
  EXPECT_EQ(Started().limits, "rlimits, cores not limited: no cgroup was named");
  EXPECT_EQ(Text("log/0.out"), "65536\n");
}

TEST_F(ShimTest, WhatTheDaemonShowsIsInTheLogOfTheWorker) {
  StartShell("sleep 600");
  Await("spool/17.0.2.start");
  Send(Tell{Tell::Kind::kShow, -1, "", "", "it is idle"});
  Send(Tell{Tell::Kind::kKill, -1, "", ""});
  EndWithRecord();
  EXPECT_EQ(Text("log/0.err"), "muster: it is idle\n");
}

TEST_F(ShimTest, TheExampleOfTheManualSpeaksTheContract) {
  const auto page = ReadFile(SourceTree() + "/docs/contract.md").value_or("");
  const auto begin = page.find("```python\n");
  ASSERT_NE(begin, std::string::npos);
  const auto code = page.substr(begin + 10, page.find("```", begin + 10) - begin - 10);
  order_.env["MUSTER_CHECKPOINT_DIR"] = "/ckpt";
  Start({"python3", "-c", code});
  Await("spool/17.0.2.report");
  Send(Tell{Tell::Kind::kMessage, -1, "", "{\"type\":\"of a later release\"}"});
  Send(Tell{});
  const auto exit = EndWithRecord();
  EXPECT_EQ(exit.exit_code, 0) << Text("log/0.err");
  EXPECT_TRUE(exit.stopped);
  EXPECT_FALSE(exit.killed);
  const auto report = contract::DecodeReport(Text("spool/17.0.2.report"));
  const auto checkpoint = contract::DecodeCheckpoint(Text("spool/17.0.2.checkpoint"));
  ASSERT_TRUE(report.has_value()) << report.error().message;
  ASSERT_TRUE(checkpoint.has_value()) << checkpoint.error().message;
  EXPECT_TRUE(report->ready);
  EXPECT_EQ(report->step.value_or(0), checkpoint->step) << "the last report is not lost";
  EXPECT_EQ(checkpoint->path, "/ckpt/" + std::to_string(checkpoint->step) + ".pt");
  EXPECT_GT(checkpoint->at_ms, 0);
}

TEST_F(ShimTest, AWorkerThatTheOthersGoOnWithoutIsToldToLeave) {
  Start({"python3", "-c", R"(import json, os, socket
line = socket.socket(socket.AF_UNIX)
line.connect(os.environ["MUSTER_SOCKET"])
line.sendall(b'{"type":"hello","version":1}\n{"type":"ready"}\n')
for told in line.makefile():
    print(json.loads(told)["type"], flush=True)
    if "grace_ms" in told: break
)"});
  Await("spool/17.0.2.report");
  Send(Tell{Tell::Kind::kStop, -1, "", "", "", true});
  const auto exit = EndWithRecord();
  EXPECT_EQ(exit.exit_code, 0) << Text("log/0.err");
  EXPECT_TRUE(exit.stopped);
  EXPECT_EQ(Text("log/0.out"), "welcome\nleave\n");
}

TEST_F(ShimTest, AnOrderThatCannotBeReadEndsTheShimAtOnce) {
  order_.launch = "../17";
  StartShell("touch $D/ran");
  EXPECT_EQ(WEXITSTATUS(End()), ExitStatus(ErrorCode::kInvalid));
  EXPECT_TRUE(LockIsFree());
  EXPECT_FALSE(fs::exists(dir_ / "run/begun"));
}

}  // namespace
}  // namespace muster::shim
