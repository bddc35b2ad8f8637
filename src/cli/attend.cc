// Attending a job that was just sent: what it waits for, its terminal or its output, its fate.
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "cli/enter.h"
#include "cli/job_verbs.h"
#include "cli/keyboard.h"
#include "cli/screen.h"
#include "client/tunnel.h"

namespace muster::cli {
namespace {

using Json = nlohmann::json;

constexpr std::chrono::milliseconds kLookAgain(100);
constexpr std::size_t kWidest = 200;

// One line of a terminal that is written over and over; nothing where there is none.
class StatusLine {
 public:
  StatusLine() : shown_(::isatty(STDERR_FILENO) == 1) {}
  ~StatusLine() { Say(""); }
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  void Say(const std::string& text) {
    if (!shown_ || text == last_) return;
    last_ = text;
    // Without wrapping: a line that is too long would not be written over.
    std::cerr << "\r\033[K\033[?7l" << text.substr(0, kWidest) << "\033[?7h" << std::flush;
  }

 private:
  bool shown_;
  std::string last_;
};

struct Standing {
  std::string phase;
  std::string reason;       // why it waits
  std::int64_t launch = 0;  // of worker 0
  bool runs = false;        // worker 0
  bool ended = false;
};

Result<Standing> Look(Session& session, const std::string& job) {
  const auto answer = session.client().Get("jobs/" + job);
  if (!answer) return tl::unexpected(answer.error());
  const auto got = Json::parse(*answer);
  const auto& status = got.at("status");
  Standing now;
  now.phase = status.value("phase", "");
  now.ended = status.contains("termination");
  if (const auto reasons = status.value("reasons", Json::array()); !reasons.empty()) {
    now.reason = reasons.at(0).get<std::string>();
  }
  const auto workers = status.value("workers", Json::array());
  if (!workers.empty()) {
    now.launch = workers.at(0).value("launches", std::int64_t{0});
    now.runs = workers.at(0).value("phase", "") == "running";
  }
  return now;
}

// Until it runs in another launch than this one, or has ended.
Result<Standing> AwaitStart(Session& session, const std::string& job, std::int64_t after) {
  const auto begun = WallMs();
  StatusLine line;
  for (;;) {
    auto now = Look(session, job);
    if (!now || now->ended || (now->runs && now->launch > after)) return now;
    const bool comes_back = after > 0 && now->runs;  // its end is not in the books yet
    if (!comes_back) {
      line.Say(fmt::format("job {} is {}{}{} ({}); Ctrl-C leaves it {}", job, now->phase,
                           now->reason.empty() ? "" : ": ", now->reason, Ago(WallMs() - begun),
                           now->phase == "waiting" ? "waiting" : "there"));
    }
    std::this_thread::sleep_for(kLookAgain);
  }
}

// One that it may not have is no fault: it printed nothing.
Result<void> ShowOutput(Session& session, const std::string& job) {
  // Standard output is the job object's where one is asked for.
  auto& out = session.for_people() ? std::cout : std::cerr;
  auto followed = FollowBoth(session, job, out, std::cerr);
  if (!followed && followed.error().code == ErrorCode::kNotFound) return {};
  return followed;
}

int Fate(Session& session, const std::string& job) {
  WaitOptions wait;
  wait.jobs = {job};
  wait.alone = true;
  return Wait(session, wait);
}

enum class Left : std::uint8_t { kDetached, kShown, kNeverJoined };  // the last two: it has ended

// One launch of it after the other, until it has ended or is left.
Result<Left> Follow(Session& session, const std::string& job, Keyboard& keys) {
  auto ended = Left::kNeverJoined;
  bool greets = true, lost = false;
  for (std::int64_t launch = 0;;) {
    const auto now = AwaitStart(session, job, launch);
    if (!now) return tl::unexpected(now.error());
    if (now->ended) return ended;
    launch = now->launch;
    const auto played = client::Play(
        session.client(), "jobs/" + job + "/attach", {{"worker", "0"}},
        {.terminal = true,
         .at_input_end = client::AtInputEnd::kLeave,
         .greeting = greets ? "attached to job " + job + "; Ctrl-] leaves it running\r\n" : "",
         .on_joined = [&] {
           keys.Release();
           if (lost) std::cout << kClearScreen << std::flush;
         }});
    if (played && played->detached) return Left::kDetached;
    if (played) {
      keys.Watch();
      ended = Left::kShown;
      greets = lost = played->lost;
    }
    if (played && lost) {  // with the daemon; the terminal is where it was
      std::cerr << "\r\nthe connection was lost; job " << job << " is not concerned\r\n";
      --launch;
      continue;
    }
    if (!played) {
      // It may have ended between the question and the call.
      const auto again = Look(session, job);
      if (!again || (again->runs && again->launch == launch)) {
        return tl::unexpected(played.error());
      }
    }
  }
}

int AttendTerminal(Session& session, const std::string& job) {
  Keyboard keys(true, [&job](char key) { return LeaveAway(job, key); });
  auto patience = session.Persist();
  patience.on_wait = [&keys, say = patience.on_wait](int left_ms) {
    keys.Watch();
    say(left_ms);
  };
  session.client().Persist(patience);
  const auto left = Follow(session, job, keys);
  session.Persist();
  keys.Restore();
  if (!left) return Refuse(left.error());
  if (*left == Left::kDetached) {
    std::cerr << "\r\ndetached; `muster attach " << job << "` comes back\n";
    return 0;
  }
  if (*left == Left::kNeverJoined) {
    if (auto output = ShowOutput(session, job); !output) return Refuse(output.error());
  }
  return Fate(session, job);
}

}  // namespace

bool AtTerminal() { return ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1; }

int Attend(Session& session, const std::string& job, Joined how) {
  if (how == Joined::kTerminal) return AttendTerminal(session, job);
  session.Persist();
  std::cerr << "job " << job << "; Ctrl-C leaves it running\n";
  if (::isatty(STDERR_FILENO) == 1) {
    if (const auto begun = AwaitStart(session, job, 0); !begun) return Refuse(begun.error());
  }
  if (auto output = ShowOutput(session, job); !output) return Refuse(output.error());
  return Fate(session, job);
}

}  // namespace muster::cli
