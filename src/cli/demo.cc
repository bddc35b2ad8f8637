#include "cli/demo.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "cli/demo_json.h"
#include "sim/story.h"

namespace muster::cli {

using sim::Happening;
using sim::Script;
using sim::StoryRun;
using sim::Turn;

namespace {

constexpr std::int64_t kSecond = 1000;
constexpr std::int64_t kMinute = 60 * kSecond;
constexpr std::int64_t kHour = 60 * kMinute;
constexpr std::int64_t kSlot = 20 * kMinute;  // a character of the timeline: a day is 72 wide
constexpr std::size_t kWidth = 100;
constexpr std::size_t kIndent = 13;  // of the story's sentences

// Writes what the demo shows into one text.
class Teller {
 public:
  Teller(const Script& script, bool colour) : script_(script), colour_(colour) {}

  void Opening();
  void Story(const StoryRun& run);
  void Timeline(const StoryRun& run, std::string_view title);
  void Legend();
  void Table(const StoryRun& pool, const StoryRun& fixed);
  const std::string& text() const { return out_; }

 private:
  // Something that happened to one job, or to several that are alike.
  struct Entry {
    const Happening* what;
    std::vector<std::size_t> jobs;
  };

  std::string Clock(std::int64_t at_ms) const;
  static std::string Span(std::int64_t ms);
  static std::string GpuTime(std::int64_t gpu_ms);
  static std::string Gpus(int count);
  std::string Names(const std::vector<std::size_t>& jobs, std::size_t beside) const;
  std::string Arrival(const Entry& entry) const;
  std::string Begun(const StoryRun& run, const Entry& entry) const;
  std::string Right(const Happening& what) const;
  std::string Sentence(const StoryRun& run, const Entry& entry) const;
  bool TellTogether(const StoryRun& run, const Happening& a, const Happening& b) const;
  void TrimLine();
  void Say(std::string_view time, std::size_t owner, std::string_view sentence);
  void Row(const StoryRun& run, std::size_t gpu);
  std::string Painted(std::size_t owner, std::string_view text) const;
  std::string Bold(std::string_view text) const;
  std::string Faint(std::string_view text) const;
  char Letter(std::size_t owner, bool borrowed) const;

  const Script& script_;
  bool colour_;
  std::string out_;
};

std::string Teller::Bold(std::string_view text) const {
  return colour_ ? fmt::format("\x1b[1m{}\x1b[0m", text) : std::string(text);
}

std::string Teller::Faint(std::string_view text) const {
  return colour_ ? fmt::format("\x1b[2m{}\x1b[0m", text) : std::string(text);
}

std::string Teller::Painted(std::size_t owner, std::string_view text) const {
  constexpr int kColours[] = {36, 33, 35, 32, 34};
  return colour_ ? fmt::format("\x1b[{}m{}\x1b[0m", kColours[owner % std::size(kColours)], text)
                 : std::string(text);
}

char Teller::Letter(std::size_t owner, bool borrowed) const {
  const auto first = static_cast<unsigned char>(script_.researchers[owner].name[0]);
  return static_cast<char>(borrowed ? std::tolower(first) : std::toupper(first));
}

std::string Teller::Clock(std::int64_t at_ms) const {
  const auto day = at_ms / script_.day_ms;
  const auto time = fmt::format("{:02}:{:02}", at_ms / kHour % 24, at_ms / kMinute % 60);
  return day == 0 ? time : fmt::format("day {} {}", day + 1, time);
}

// The two largest units that are not zero: "2 s", "48 min", "5 h 07 min".
std::string Teller::Span(std::int64_t ms) {
  if (ms < kMinute) return fmt::format("{} s", (ms + kSecond / 2) / kSecond);
  if (ms < kHour) return fmt::format("{} min", (ms + kMinute / 2) / kMinute);
  return fmt::format("{} h {:02} min", ms / kHour, ms / kMinute % 60);
}

std::string Teller::GpuTime(std::int64_t gpu_ms) {
  if (gpu_ms < kHour) return fmt::format("{} GPU-minutes", (gpu_ms + kMinute / 2) / kMinute);
  return fmt::format("{:.1f} GPU-hours", static_cast<double>(gpu_ms) / kHour);
}

// "a", "a and b", "a, b and c"; with their owner in front where that is somebody else.
std::string Teller::Names(const std::vector<std::size_t>& jobs, std::size_t beside) const {
  std::string out;
  const auto owner = script_.jobs[jobs[0]].owner;
  if (owner != beside) out = script_.researchers[owner].name + "'s ";
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (i > 0) out += i + 1 == jobs.size() ? " and " : ", ";
    out += script_.jobs[jobs[i]].name;
  }
  return out;
}

std::string Teller::Gpus(int count) {
  return fmt::format("{} GPU{}", count, count == 1 ? "" : "s");
}

std::string Teller::Arrival(const Entry& entry) const {
  const auto& spec = script_.jobs[entry.jobs[0]];
  const char* each = entry.jobs.size() > 1 ? " each" : "";
  std::string size = spec.min_workers == spec.max_workers
                         ? Gpus(spec.max_workers)
                         : fmt::format("{} to {} GPUs", spec.min_workers, spec.max_workers);
  if (spec.interactive) size += ", interactive";
  if (spec.priority > 50) size += ", high priority";
  return fmt::format("submits {}: {}, {} of work{}", Names(entry.jobs, spec.owner), size,
                     GpuTime(spec.work_gpu_ms), each);
}

std::string Teller::Begun(const StoryRun& run, const Entry& entry) const {
  const Happening& what = *entry.what;
  const auto& owner = script_.researchers[script_.jobs[what.job].owner];
  const bool many = entry.jobs.size() > 1, again = what.turn == Turn::kResume;
  std::string text = again ? (many ? "resume" : "resumes by itself") : (many ? "start" : "starts");
  text += fmt::format(" on {}{}", Gpus(what.to), many ? " each" : "");
  const int over = what.held + what.to - sim::QuotaOf(owner, run.sharing);
  if (over > 0) text += over < what.to ? fmt::format(", {} of them borrowed", over) : ", borrowed";
  if (what.waited_ms == 0) return text + ", at once";
  return text + fmt::format(", {} {}", Span(what.waited_ms), again ? "later" : "after submission");
}

// By which right something was taken back.
std::string Teller::Right(const Happening& what) const {
  const auto& owner = script_.researchers[script_.jobs[what.job].owner];
  switch (what.rule) {
    case model::Rule::kShrink:
    case model::Rule::kReclaimShare:
    case model::Rule::kReclaimQuota:
      if (what.held * kMilli > what.share_milli) {
        return fmt::format("{} held {}, fair share now {}", owner.name, what.held,
                           FormatMilli(what.share_milli));
      }
      return fmt::format("{} held {}, {} are guaranteed", owner.name, what.held, owner.quota);
    case model::Rule::kPreempt:
      return fmt::format("a higher priority of {}'s own", owner.name);
    default:
      return std::string(model::Name(what.rule));
  }
}

std::string Teller::Sentence(const StoryRun& run, const Entry& entry) const {
  const Happening& what = *entry.what;
  const auto owner = script_.jobs[what.job].owner;
  const auto names = Names(entry.jobs, owner);
  const char* is = entry.jobs.size() > 1 ? "are" : "is";
  const auto target = what.causes.empty() ? "" : " for " + Names(what.causes, owner);
  switch (what.turn) {
    case Turn::kArrive:
      return Arrival(entry);
    case Turn::kStart:
    case Turn::kResume:
      return fmt::format("{} {}", names, Begun(run, entry));
    case Turn::kGrow:
      return fmt::format("{} grows from {} to {} workers", names, what.from, what.to);
    case Turn::kShrink:
      return fmt::format("{} shrinks from {} to {} workers{}: {}", names, what.from, what.to,
                         target, Right(what));
    case Turn::kPause:
      return fmt::format("{} {} paused{}: {}; {} since the last checkpoint lost", names, is, target,
                         Right(what), GpuTime(what.lost_gpu_ms));
    case Turn::kEnd:
      return fmt::format("{} {} done, {} after submission", names, is,
                         Span(what.at_ms - script_.jobs[what.job].arrives_ms));
  }
  return {};
}

// One entry of the story, wrapped to the width of the page.
void Teller::Say(std::string_view time, std::size_t owner, std::string_view sentence) {
  const auto& name = script_.researchers[owner].name;
  out_ += fmt::format("{:<7}", time) + Painted(owner, fmt::format("{:<6}", name));
  std::size_t column = kIndent;
  while (!sentence.empty()) {
    const auto end = std::min(sentence.find(' '), sentence.size());
    const auto word = sentence.substr(0, end);
    if (column > kIndent && column + 1 + word.size() > kWidth) {
      out_ += "\n" + std::string(kIndent + 2, ' ');
      column = kIndent + 2;
    } else if (column > kIndent) {
      out_ += ' ';
      ++column;
    }
    out_ += word;
    column += word.size();
    sentence.remove_prefix(std::min(end + 1, sentence.size()));
  }
  out_ += "\n";
}

void Teller::Opening() {
  out_ += Bold(fmt::format("{} GPUs, {} researchers, one day", script_.gpus,
                           script_.researchers.size())) +
          "\n\n";
  out_ += "Each is guaranteed";
  int guaranteed = 0;
  for (std::size_t i = 0; i < script_.researchers.size(); ++i) {
    const auto& researcher = script_.researchers[i];
    const char* joint = i == 0 ? " " : i + 1 == script_.researchers.size() ? " and " : ", ";
    out_ += joint + Painted(i, researcher.name) + " " + std::to_string(researcher.quota);
    guaranteed += researcher.quota;
  }
  out_ += fmt::format(" of them; {} belong to nobody. What is idle is lent\n",
                      script_.gpus - guaranteed);
  out_ += "out, and comes back the moment its owner asks.\n\n";
}

// Whether one sentence does for both: equal jobs of one researcher to which the same happened.
bool Teller::TellTogether(const StoryRun& run, const Happening& a, const Happening& b) const {
  if (&a == &b) return true;
  const auto &x = script_.jobs[a.job], &y = script_.jobs[b.job];
  const auto over = [&](const Happening& what) {
    const auto& owner = script_.researchers[script_.jobs[what.job].owner];
    return std::clamp(what.held + what.to - sim::QuotaOf(owner, run.sharing), 0, what.to);
  };
  const bool same_jobs = x.owner == y.owner && x.min_workers == y.min_workers &&
                         x.max_workers == y.max_workers && x.work_gpu_ms == y.work_gpu_ms &&
                         x.arrives_ms == y.arrives_ms && x.priority == y.priority;
  const bool resized = a.turn == Turn::kGrow || a.turn == Turn::kShrink || a.turn == Turn::kPause;
  return same_jobs && !resized && a.at_ms == b.at_ms && a.turn == b.turn && a.to == b.to &&
         a.waited_ms == b.waited_ms && over(a) == over(b);
}

void Teller::Story(const StoryRun& run) {
  out_ += Bold("What happens") + "\n";
  std::string last;
  for (std::size_t i = 0; i < run.happenings.size() && run.happenings[i].at_ms < script_.day_ms;) {
    Entry entry{&run.happenings[i], {}};
    while (i < run.happenings.size() && TellTogether(run, *entry.what, run.happenings[i])) {
      entry.jobs.push_back(run.happenings[i++].job);
    }
    const auto time = Clock(entry.what->at_ms);
    Say(last == time ? "" : time, script_.jobs[entry.what->job].owner, Sentence(run, entry));
    last = time;
  }
  out_ += "\n";
}

void Teller::TrimLine() {
  while (out_.back() == ' ') out_.pop_back();
  out_ += "\n";
}

void Teller::Row(const StoryRun& run, std::size_t gpu) {
  out_ += fmt::format("GPU {}  ", gpu);
  for (std::int64_t at = kSlot - 1; at < script_.day_ms; at += kSlot) {
    const auto seat = sim::SeatsAt(script_, run, at)[gpu];
    if (seat.job == sim::kNobody) {
      out_ += Faint(".");
      continue;
    }
    const auto owner = script_.jobs[seat.job].owner;
    out_ += Painted(owner, std::string(1, Letter(owner, seat.borrowed)));
  }
  out_ += "\n";
}

void Teller::Timeline(const StoryRun& run, std::string_view title) {
  out_ += Bold(title) + "\n       ";
  for (std::int64_t at = 0; at < script_.day_ms; at += 3 * kHour) {
    out_ += fmt::format("{:<9}", Clock(at));
  }
  TrimLine();
  for (int gpu = 0; gpu < script_.gpus; ++gpu) Row(run, static_cast<std::size_t>(gpu));
  out_ += "waits  ";
  for (std::int64_t at = kSlot - 1; at < script_.day_ms; at += kSlot) {
    const int waiting = sim::WaitingAt(script_, run, at);
    out_ += waiting == 0 ? " " : waiting > 9 ? "+" : std::to_string(waiting);
  }
  TrimLine();
  out_ += "\n";
}

void Teller::Legend() {
  out_ += "Each column is " + Span(kSlot) + ":";
  for (std::size_t i = 0; i < script_.researchers.size(); ++i) {
    out_ += " " + Painted(i, fmt::format("{} {},", Letter(i, false), script_.researchers[i].name));
  }
  out_ +=
      " a capital letter within the guarantee,\na small one borrowed; . idle; waits: jobs that "
      "hold no GPU.\n\n";
}

void Teller::Table(const StoryRun& pool, const StoryRun& fixed) {
  const auto hours = [](std::int64_t gpu_ms) {
    return fmt::format("{:.1f}", static_cast<double>(gpu_ms) / kHour);
  };
  const auto row = [&](std::string_view name, auto&& value) {
    out_ += fmt::format("{:<44}{:>14}{:>16}\n", name, value(pool.measures), value(fixed.measures));
  };
  out_ +=
      Bold(fmt::format("{:<44}{:>14}{:>16}", "Side by side", "shared pool", "fixed quotas")) + "\n";
  using M = sim::Measures;
  const auto day = static_cast<double>(script_.gpus * script_.day_ms);
  row("utilisation of the day", [&](const M& m) {
    return fmt::format("{:.0f} %", 100 * static_cast<double>(m.held_gpu_ms) / day);
  });
  row("GPU-hours used", [&](const M& m) { return hours(m.held_gpu_ms); });
  row("GPU-hours of work done and kept", [&](const M& m) { return hours(m.useful_gpu_ms); });
  row("GPU-hours idle while work waited", [&](const M& m) { return hours(m.idle_wanted_gpu_ms); });
  row("jobs done by midnight",
      [&](const M& m) { return fmt::format("{} of {}", m.ended_in_day, script_.jobs.size()); });
  row("last job done", [&](const M& m) { return Clock(m.all_done_ms); });
  row("mean time from submission to result", [](const M& m) { return Span(m.mean_completion_ms); });
  row("mean wait, pauses included", [](const M& m) { return Span(m.mean_wait_ms); });
  row("longest wait inside a guarantee", [](const M& m) { return Span(m.longest_entitled_ms); });
  row("pauses", [](const M& m) { return std::to_string(m.pauses); });
  row("GPU-hours lost by pauses", [&](const M& m) { return hours(m.lost_gpu_ms); });
  out_ += "\n";
  const auto more = 100 * pool.measures.useful_gpu_ms / fixed.measures.useful_gpu_ms - 100;
  out_ += Bold(fmt::format(
              "The same GPUs did {} % more work by midnight, and nobody waited longer than {} "
              "for the guarantee.",
              more, Span(pool.measures.longest_entitled_ms))) +
          "\n\n";
  std::string each;
  for (const auto& researcher : script_.researchers) {
    each += fmt::format("{}{}", each.empty() ? "" : "/", researcher.fixed_quota);
  }
  out_ += fmt::format(
      "Fixed quotas: the same engine and jobs, but {} GPUs of their own and no lending.\n", each);
  out_ += fmt::format(
      "Assumed: speed grows with workers; a checkpoint every {}; giving a GPU back takes {},\n"
      "pausing {}, loading a checkpoint {}. Nothing here is measured on real GPUs.\n",
      Span(script_.checkpoint_every_ms), Span(script_.shrink_ms), Span(script_.pause_ms),
      Span(script_.restart_ms));
}

bool WantsColour() {
  const char* no_colour = std::getenv("NO_COLOR");
  if (no_colour != nullptr && *no_colour != '\0') return false;
  const char* terminal = std::getenv("TERM");
  if (terminal != nullptr && std::string_view(terminal) == "dumb") return false;
  return isatty(STDOUT_FILENO) == 1;
}

int Complain(const Error& error) {
  std::fprintf(stderr, "muster: %s\n", Describe(error).c_str());
  return ExitStatus(error.code);
}

}  // namespace

int RunDemoShare(Output output) {
  const Script script = sim::ClassicDay();
  const auto pool = sim::PlayStory(script, sim::Sharing::kPool);
  if (!pool) return Complain(pool.error());
  const auto fixed = sim::PlayStory(script, sim::Sharing::kFixed);
  if (!fixed) return Complain(fixed.error());
  if (!ForPeople(output)) return ShowDocument(output, StoryJson(script, *pool, *fixed));
  Teller teller(script, WantsColour());
  teller.Opening();
  teller.Story(*pool);
  teller.Timeline(*pool, "Shared pool");
  teller.Timeline(*fixed, "Fixed quotas");
  teller.Legend();
  teller.Table(*pool, *fixed);
  std::fputs(teller.text().c_str(), stdout);
  return 0;
}

}  // namespace muster::cli
