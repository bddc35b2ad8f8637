// Those who attach to a worker or run something beside it, in the built program.
#include "shim/door.h"

#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <csignal>
#include <fstream>
#include <optional>

#include "contract/signals.h"
#include "shim/shim_fixture.h"

namespace muster::shim {
namespace {

using contract::Attach;
using contract::Ended;
using contract::Exec;
using contract::FrameKind;
using contract::Tell;
using testing::HasSubstr;

// The other side of the door; waits for what it reads.
class Client {
 public:
  Client(const std::string& run_dir, const contract::DoorRequest& request)
      : Client(run_dir, contract::Encode(request)) {}
  Client(const std::string& run_dir, const std::string& line) {
    const auto connected = contract::ConnectDoor(run_dir);
    EXPECT_TRUE(connected.has_value()) << connected.error().message;
    socket_ = Handle(connected.value_or(-1));
    fcntl(socket_.get(), F_SETFL, 0);
    Write(line);
  }

  void Write(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto size = send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (size <= 0) return;
      bytes.remove_prefix(static_cast<std::size_t>(size));
    }
  }
  void Send(FrameKind kind, std::string_view payload = {}) {
    Write(contract::EncodeFrame(kind, payload));
  }
  void Type(std::string_view text) { Send(FrameKind::kData, text); }
  void Leave() { socket_.Close(); }

  // The next frame; none: the connection is closed.
  std::optional<contract::Frame> Next() {
    while (true) {
      auto frame = reader_.Next();
      if (!frame) {
        ADD_FAILURE() << frame.error().message;
        return std::nullopt;
      }
      if (*frame) return *std::move(frame);
      char block[65'536];
      const auto size = recv(socket_.get(), block, sizeof block, 0);
      if (size <= 0) return std::nullopt;
      reader_.Add({block, static_cast<std::size_t>(size)});
    }
  }

  // Reads until `text` was shown; what came of it so far is in `seen`.
  bool Sees(const std::string& text) {
    while (seen.find(text) == std::string::npos) {
      const auto frame = Next();
      if (!frame || !Keep(*frame)) return false;
    }
    return true;
  }
  // Reads to the last frame.
  void Finish() {
    for (auto frame = Next(); frame; frame = Next()) Keep(*frame);
  }

  std::string seen;
  std::string err;
  std::optional<Ended> end;
  std::string fault;

 private:
  bool Keep(const contract::Frame& frame) {
    switch (frame.kind) {
      case FrameKind::kData:
        seen += frame.payload;
        return true;
      case FrameKind::kErr:
        err += frame.payload;
        return true;
      case FrameKind::kExit:
        end = contract::DecodeEnded(frame.payload).value();
        return false;
      default:
        fault = frame.payload;
        return false;
    }
  }

  Handle socket_;
  contract::FrameReader reader_;
};

class DoorTest : public ShimTest {
 protected:
  Client Join(const contract::DoorRequest& request = Attach{}) { return {order_.run_dir, request}; }
  void Kill() { Send(Tell{Tell::Kind::kKill, -1, "", ""}); }
  // A worker that does nothing but be there.
  void StartIdle() {
    StartShell("echo up; sleep 1000");
    Started();
  }
  void StartBash() {
    order_.terminal = true;
    order_.env["PS1"] = "ready> ";
    Start({"bash", "--norc", "--noediting", "-i"});
    Started();
  }
};

TEST_F(DoorTest, BelongsToTheDaemonAlone) {
  if (geteuid() == 0) order_.user = contract::User{65534, 65533, {}};
  StartIdle();
  struct stat facts {};
  ASSERT_EQ(stat((dir_ / "run/door").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_uid, geteuid());
  EXPECT_EQ(facts.st_mode & 0777, 0600U);
  Kill();
  EndWithRecord();
  EXPECT_FALSE(fs::exists(dir_ / "run/door"));
}

TEST_F(DoorTest, WhoAttachesSeesThePromptTypesAndLearnsOfTheEnd) {
  StartBash();
  auto client = Join(Attach{{40, 99}});
  ASSERT_TRUE(client.Sees("ready> "));
  client.Type("stty size\r");
  ASSERT_TRUE(client.Sees("40 99"));
  client.Send(FrameKind::kWindow, contract::EncodeWindow({41, 98}));
  client.Type("stty size; exit 5\r");
  ASSERT_TRUE(client.Sees("41 98"));
  client.Finish();
  ASSERT_TRUE(client.end.has_value()) << client.fault;
  EXPECT_EQ(*client.end, (Ended{5, 0}));
  EXPECT_EQ(EndWithRecord().exit_code, 5);
  EXPECT_EQ(Text("log/0.out"), client.seen) << "what is shown is what is logged";
}

TEST_F(DoorTest, CtrlCReachesTheForegroundAndCtrlZStopsIt) {
  StartBash();
  auto client = Join();
  ASSERT_TRUE(client.Sees("ready> "));
  client.Type("cat\rone\r");
  ASSERT_TRUE(client.Sees("one\r\none\r\n")) << "what is typed, and then what cat makes of it";
  client.Type("\x03");
  ASSERT_TRUE(client.Sees("^C\r\nready> ")) << client.seen;
  client.Type("echo \"status $?\"\r");
  ASSERT_TRUE(client.Sees("status 130\r\nready> ")) << client.seen;
  client.Type("cat\rtwo\r");
  ASSERT_TRUE(client.Sees("two\r\ntwo\r\n"));
  client.Type("\x1a");
  ASSERT_TRUE(client.Sees("Stopped")) << client.seen;
  client.Type("kill -9 %1; exit; exit\r");
  client.Finish();
  EXPECT_TRUE(client.end.has_value());
  EndWithRecord();
}

TEST_F(DoorTest, ThatSomebodyTypesIsRecorded) {
  StartBash();
  auto client = Join();
  ASSERT_TRUE(client.Sees("ready> "));
  EXPECT_FALSE(fs::exists(dir_ / "spool/17.0.2.report")) << "looking is not typing";
  client.Type("e");
  Await("spool/17.0.2.report");
  const auto first = contract::DecodeReport(Text("spool/17.0.2.report")).value();
  EXPECT_GE(first.last_input_ms, Started().at_ms);
  EXPECT_EQ(first.at_ms, 0) << "the worker itself has said nothing";
  client.Type("xit\r");
  client.Finish();
  EndWithRecord();
  const auto last = contract::DecodeReport(Text("spool/17.0.2.report")).value();
  EXPECT_GE(last.last_input_ms, first.last_input_ms);
}

TEST_F(DoorTest, ASignalGoesToTheForeground) {
  StartBash();
  auto client = Join();
  ASSERT_TRUE(client.Sees("ready> "));
  client.Type("cat\rone\r");
  ASSERT_TRUE(client.Sees("one\r\none\r\n"));
  client.Send(FrameKind::kSignal, "SIGUSR1");
  ASSERT_TRUE(client.Sees("signal 1\r\nready> ")) << client.seen;
  client.Type("echo \"status $?\"; exit\r");
  ASSERT_TRUE(client.Sees("status 138")) << client.seen;
  client.Finish();
  EndWithRecord();
}

TEST_F(DoorTest, SeveralSeeTheSameAndLeavingIsJustClosing) {
  StartBash();
  auto first = Join();
  ASSERT_TRUE(first.Sees("ready> "));
  first.Type("echo on''e\r");
  ASSERT_TRUE(first.Sees("one\r\nready> "));
  auto second = Join();
  ASSERT_TRUE(second.Sees("one\r\nready> ")) << "what was shown before";
  first.Leave();
  second.Type("echo tw''o; exit 0\r");
  ASSERT_TRUE(second.Sees("two\r\n"));
  second.Finish();
  EXPECT_EQ(EndWithRecord().exit_code, 0);
}

TEST_F(DoorTest, AReplayIsBoundedAndBeginsWithALine) {
  order_.terminal = true;
  mkfifo((dir_ / "go").c_str(), 0600);
  StartShell("seq 10000 39999; touch $D/up; read go <$D/go");
  Await("up");
  Join(Exec{{"true"}, false, {}, {}}).Finish();  // by then all that was printed is kept
  auto client = Join();
  ASSERT_TRUE(client.Sees("39999\r\n"));
  EXPECT_LE(client.seen.size(), 65'536U);
  EXPECT_THAT(client.seen, testing::StartsWith("30638\r\n"));
  std::ofstream(dir_ / "go") << "go\n";
  client.Finish();
  EndWithRecord();
}

TEST_F(DoorTest, WhoDoesNotReadIsDroppedAndTheWorkerGoesOn) {
  order_.log_bytes = 100 << 20;
  mkfifo((dir_ / "go").c_str(), 0600);
  StartShell("read go <$D/go; head -c 20000000 /dev/zero; touch $D/done; read go <$D/go");
  Started();
  auto client = Join();
  auto other = Join(Exec{{"sh", "-c", "echo go >$D/go"}, false, {}, {}});
  other.Finish();
  Await("done");
  client.Finish();
  EXPECT_THAT(client.fault, HasSubstr("prints more than is read here"));
  EXPECT_LT(client.seen.size(), 20'000'000U);
  std::ofstream(dir_ / "go") << "go\n";
  EXPECT_EQ(EndWithRecord().log_bytes_dropped, 0);
}

TEST_F(DoorTest, WithoutATerminalBothStreamsAreSeenAndNothingIsTyped) {
  mkfifo((dir_ / "go").c_str(), 0600);
  StartShell("echo before; touch $D/up; read go <$D/go; echo out; echo err >&2; exit 3");
  Await("up");
  auto typist = Join();
  typist.Type("hello\n");
  typist.Finish();
  EXPECT_THAT(typist.fault, HasSubstr("this worker has no terminal"));
  auto client = Join();
  auto ready = Join(Exec{{"true"}, false, {}, {}});  // asked for later, so the first is in
  ready.Finish();
  std::ofstream(dir_ / "go") << "go\n";
  client.Finish();
  EXPECT_EQ(client.seen, "out\n");
  EXPECT_EQ(client.err, "err\n");
  EXPECT_EQ(client.end, (Ended{3, 0}));
  EndWithRecord();
}

TEST_F(DoorTest, NonsenseIsAnsweredAndCutOff) {
  StartIdle();
  const auto answer = [&](const std::string& bytes) {
    Client client(order_.run_dir, bytes);
    client.Finish();
    return client.fault;
  };
  EXPECT_THAT(answer("hello\n"), HasSubstr("not a JSON object"));
  EXPECT_THAT(answer("{\"type\":\"open\"}\n"), HasSubstr("neither attach nor exec"));
  EXPECT_THAT(answer(std::string(70'000, 'x')), HasSubstr("too long"));
  const auto attach = contract::Encode(contract::DoorRequest(Attach{}));
  EXPECT_THAT(answer(attach + "?????"), HasSubstr("is no kind of frame"));
  EXPECT_THAT(answer(attach + contract::EncodeFrame(FrameKind::kSignal, "SIGNO")),
              HasSubstr("is no signal"));
  EXPECT_THAT(answer(attach + contract::EncodeFrame(FrameKind::kExit, "")),
              HasSubstr("not for a worker"));
  EXPECT_THAT(answer(attach + contract::EncodeFrame(FrameKind::kWindow, "")),
              HasSubstr("no size of a window"));
  Kill();
  EndWithRecord();
}

TEST_F(DoorTest, WhoAttachesToAWorkerThatIsKilledLearnsTheSignal) {
  StartIdle();
  auto client = Join();
  Join(Exec{{"true"}, false, {}, {}}).Finish();
  Kill();
  client.Finish();
  EXPECT_EQ(client.end, (Ended{-1, SIGKILL}));
  EndWithRecord();
}

TEST_F(DoorTest, ExecHasTheWorkersFolderEnvironmentUserAndLimits) {
  if (geteuid() == 0) order_.user = contract::User{65534, 65533, {65532}};
  order_.cores = {0};
  order_.memory_bytes = 512 << 20;
  StartIdle();
  const auto limits = Started().limits;
  auto client =
      Join(Exec{{"sh", "-c",
                 "echo \"$PWD|$D|$A\"; id -u; id -G; grep Cpus_allowed_list /proc/self/status; "
                 "ls /proc/self/fd | tr '\\n' ' '; cat /proc/self/cgroup; echo err >&2; exit 6"},
                false,
                {},
                {{"A", "b c"}}});
  client.Finish();
  EXPECT_EQ(client.end, (Ended{6, 0})) << client.fault;
  EXPECT_THAT(client.seen, HasSubstr(order_.workdir + "|" + dir_.string() + "|b c\n"));
  EXPECT_THAT(client.seen, HasSubstr(order_.user ? "65534\n65533 65532\n" : "\n"));
  EXPECT_THAT(client.seen, HasSubstr("Cpus_allowed_list:\t0\n0 1 2 3 "));
  EXPECT_THAT(client.seen, HasSubstr(limits.starts_with("cgroup") ? "/17.0.2\n" : "\n"));
  EXPECT_EQ(client.err, "err\n");
  EXPECT_EQ(Text("log/0.err"), "-") << "it is nobody's output but the client's";
  Kill();
  EXPECT_EQ(EndWithRecord().signal, SIGKILL);
}

TEST_F(DoorTest, ExecReadsWhatIsTypedUntilTheEndOfInput) {
  StartIdle();
  auto client = Join(Exec{{"sh", "-c", "wc -c"}, false, {}, {}});
  const std::string piece(60'000, 'x');
  for (int i = 0; i < 50; ++i) client.Type(piece);
  client.Send(FrameKind::kEnd);
  client.Finish();
  EXPECT_EQ(client.seen, "3000000\n");
  EXPECT_EQ(client.end, (Ended{0, 0}));
  Kill();
  EndWithRecord();
}

TEST_F(DoorTest, ExecLosesNoOutputToASlowReader) {
  StartIdle();
  auto client =
      Join(Exec{{"sh", "-c", "head -c 5000000 /dev/zero; touch $D/done; exit 4"}, false, {}, {}});
  Join(Exec{{"true"}, false, {}, {}}).Finish();
  EXPECT_FALSE(fs::exists(dir_ / "done")) << "it waits for its reader";
  client.Finish();
  EXPECT_EQ(client.seen.size(), 5'000'000U);
  EXPECT_EQ(client.end, (Ended{4, 0}));
  Kill();
  EndWithRecord();
}

TEST_F(DoorTest, ExecWithATerminalIsASessionOfItsOwn) {
  StartIdle();
  auto client =
      Join(Exec{{"bash", "--norc", "--noediting", "-i"}, true, {30, 90}, {{"PS1", "% "}}});
  ASSERT_TRUE(client.Sees("% "));
  client.Type("stty size; echo $TERM; cat\r");
  ASSERT_TRUE(client.Sees("30 90\r\nxterm-256color\r\n")) << client.seen;
  client.Type("one\r");
  ASSERT_TRUE(client.Sees("one\r\none\r\n"));
  client.Type("\x03");
  ASSERT_TRUE(client.Sees("^C\r\n% ")) << client.seen;
  client.Type("exit 9\r");
  client.Finish();
  EXPECT_EQ(client.end, (Ended{9, 0}));
  Kill();
  EXPECT_EQ(EndWithRecord().signal, SIGKILL);
}

TEST_F(DoorTest, ExecIsToldWhenItsClientGoes) {
  StartIdle();
  for (const auto& [terminal, signal] : {std::pair(true, "HUP"), {false, "TERM"}}) {
    const std::string mark = std::string("gone-") + signal;
    auto client = Join(Exec{{"sh", "-c",
                             "trap 'touch $D/" + mark + "; exit' " + signal +
                                 "; echo here; while :; do sleep 1000 & wait; done"},
                            terminal,
                            {},
                            {}});
    ASSERT_TRUE(client.Sees("here"));
    client.Leave();
    Await(mark);
  }
  EXPECT_FALSE(fs::exists(dir_ / "spool/17.0.2.exit")) << "the worker goes on";
  Kill();
  EndWithRecord();
}

TEST_F(DoorTest, ExecEndsWithTheWorker) {
  mkfifo((dir_ / "go").c_str(), 0600);
  StartShell("read go <$D/go; exit 2");
  Started();
  auto client = Join(
      Exec{{"sh", "-c", "trap '' TERM HUP; echo here; sleep 1000; sleep 1000"}, false, {}, {}});
  ASSERT_TRUE(client.Sees("here"));
  std::ofstream(dir_ / "go") << "go\n";
  client.Finish();
  EXPECT_EQ(client.end, (Ended{-1, SIGKILL}));
  EXPECT_EQ(EndWithRecord().exit_code, 2);
}

TEST_F(DoorTest, AnExecThatCannotRunIsExplained) {
  StartIdle();
  auto client = Join(Exec{{"bahs"}, false, {}, {}});
  client.Finish();
  EXPECT_EQ(client.fault, "cannot run \"bahs\": no such file or directory");
  Kill();
  EndWithRecord();
}

TEST_F(DoorTest, ThePrefixOfAContainerComesBeforeTheCommandAndItsVariables) {
  order_.exec_prefix = {"echo", "exec", "-i", "box"};
  order_.exec_terminal_prefix = {"echo", "exec", "-it", "box"};
  StartIdle();
  auto piped = Join(Exec{{"ls", "-l"}, false, {}, {{"A", "b"}}});
  piped.Finish();
  EXPECT_EQ(piped.seen, "exec -i box env A=b ls -l\n");
  auto typed = Join(Exec{{"bash"}, true, {}, {}});
  typed.Finish();
  EXPECT_EQ(typed.seen, "exec -it box bash\r\n");
  Kill();
  EndWithRecord();
}

TEST_F(DoorTest, NothingIsRunBesideAWorkerThatIsBeingStopped) {
  StartShell("trap 'touch $D/told' TERM; touch $D/up; while :; do sleep 0.01; done");
  Await("up");
  Send(Tell{});
  Await("told");
  auto client = Join(Exec{{"true"}, false, {}, {}});
  client.Finish();
  EXPECT_EQ(client.fault, "this worker is being stopped");
  Kill();
  EndWithRecord();
}

}  // namespace
}  // namespace muster::shim
