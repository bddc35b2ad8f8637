// `muster top`: the cluster and its jobs on a whole screen, as they are now.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/enter.h"
#include "cli/event_text.h"
#include "cli/full_screen.h"
#include "cli/options.h"
#include "cli/table.h"
#include "cli/top_feed.h"
#include "cli/top_view.h"
#include "cli/verbs.h"

namespace muster::cli {
namespace {

using Json = nlohmann::json;

constexpr int kTickMs = 1'000;  // the clock, and how long jobs have run
constexpr int kHeadRows = 8;
constexpr std::size_t kWhyIndent = 9;     // behind "held by  "
constexpr std::size_t kDateColumns = 11;  // "2026-11-15 "
constexpr int kEventsShown = 100;

// What why prints, in a few lines.
std::vector<std::string> WhyLines(client::Client& client, std::int64_t job) {
  const auto answer = client.Get(fmt::format("jobs/{}/explain", job));
  if (!answer) return {Describe(answer.error())};
  const auto got = Json::parse(*answer);
  const auto told = TellWhy(got.value("name", ""), got);
  std::vector<std::string> lines{told.before + told.phase + told.after + "."};
  if (got.contains("share")) {
    const auto& share = got.at("share");
    lines.push_back(fmt::format("share    quota {}, held {}, fair share now {}; {} jobs ahead",
                                Plain(share.at("quota")), Plain(share.at("held")),
                                Plain(share.at("fair_share")), got.value("jobs_ahead", 0)));
    lines.push_back(fmt::format("room     {} of {} workers fit now", got.value("fit_now", 0),
                                got.value("workers_needed", 0)));
  }
  for (const auto& holder : got.value("held_by", Json::array())) {
    lines.push_back(fmt::format("held by  {}: {} GPUs, {}", holder.value("queue", ""),
                                Plain(holder.at("gpus")), holder.value("right", "")));
  }
  for (const auto& change : got.value("would_start_it", Json::array())) {
    lines.push_back("if you   " + change.get<std::string>());
  }
  for (const auto& one : got.value("preemptions", Json::array())) {
    lines.push_back(fmt::format("history  {} {} by rule {}", Clock(TimeMs(one, "at")),
                                one.value("what", ""), one.value("rule", "")));
  }
  return lines;
}

// What happened to it, oldest first.
std::vector<std::string> EventLines(client::Client& client, std::int64_t job) {
  const auto answer = client.Get(fmt::format("jobs/{}/events", job),
                                 {{"sort", "-revision"}, {"limit", std::to_string(kEventsShown)}});
  if (!answer) return {Describe(answer.error())};
  const auto got = Json::parse(*answer);
  std::vector<std::string> lines;
  for (const auto& event : got.at("events")) {
    lines.push_back(Clock(TimeMs(event, "at")).substr(kDateColumns) + " " + SentenceOf(event));
  }
  std::reverse(lines.begin(), lines.end());
  return lines;
}

class Top {
 public:
  Top(Session& session, bool color)
      : session_(session),
        cells_(SizeNow().rows, SizeNow().cols, color),
        feed_(session.target(), [this] { terminal_.Wake(); }) {}

  int Run() {
    for (;;) {
      Show();
      const auto happened = terminal_.Wait(kTickMs);
      if (happened.signal != 0) return 128 + happened.signal;
      if (happened.gone) return 0;
      if (happened.resized) cells_.Resize(SizeNow().rows, SizeNow().cols);
      for (const auto key : happened.keys) {
        if (!Press(key)) return 0;
      }
      Refresh();
    }
  }

 private:
  enum class Mode : std::uint8_t { kTable, kFilter, kCancel };
  enum class Pane : std::uint8_t { kNone, kWhy, kEvents, kOut, kErr };

  void Show() {
    frame_.now_ms = WallMs();
    frame_.prompt = Prompt();
    DrawTop(model_, frame_, cells_);
    terminal_.Write(cells_.Draw());
  }

  std::string Prompt() {
    if (mode_ == Mode::kFilter) return "/" + model_.filter() + "_";
    if (mode_ == Mode::kCancel) {
      const auto* job = model_.Find(asked_);
      return fmt::format("cancel job {} ({})? y/n", asked_, job == nullptr ? "" : job->name);
    }
    return std::exchange(said_, "");
  }

  void Refresh() {
    const auto before = model_.revision;
    feed_.Take(model_);
    if (pane_ == Pane::kOut || pane_ == Pane::kErr) feed_.TakeLog(frame_.pane.lines);
    if (model_.revision != before) Ask();
  }

  // False: quit.
  bool Press(char32_t key) {
    if (key == keys::kCtrlC) return false;
    switch (mode_) {
      case Mode::kFilter:
        TypeFilter(key);
        return true;
      case Mode::kCancel:
        mode_ = Mode::kTable;
        if (key == U'y' || key == U'Y') Cancel();
        return true;
      case Mode::kTable:
        return key != U'q' && (MoveBy(key) || Do(key));
    }
    return true;
  }

  void TypeFilter(char32_t key) {
    std::string text = model_.filter();
    if (key == keys::kEnter || key == keys::kEscape) {
      mode_ = Mode::kTable;
      if (key == keys::kEscape) text.clear();
    } else if (key == keys::kBackspace) {
      while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0xC0) == 0x80) {
        text.pop_back();
      }
      if (!text.empty()) text.pop_back();
    } else if (key >= 0x20 && key < 0x7F) {
      text += static_cast<char>(key);
    }
    model_.Filter(std::move(text));
  }

  bool MoveBy(char32_t key) {
    const int page = TableRows(model_, frame_, cells_.rows());
    const std::int64_t by = key == keys::kUp || key == U'k'     ? -1
                            : key == keys::kDown || key == U'j' ? 1
                            : key == keys::kPageUp              ? -page
                            : key == keys::kPageDown            ? page
                            : key == keys::kHome || key == U'g' ? INT32_MIN
                            : key == keys::kEnd || key == U'G'  ? INT32_MAX
                                                                : 0;
    if (by != 0) model_.Move(by, WallMs());
    return by != 0;
  }

  bool Do(char32_t key) {
    frame_.help = key == U'?' && !frame_.help;
    switch (key) {
      case U's':
        model_.SortNext();
        break;
      case U'r':
        model_.Reverse();
        break;
      case U'e':
        Open(Pane::kEvents);
        break;
      case U'a':
        model_.ShowEnded(!model_.shows_ended());
        break;
      case U'/':
        mode_ = Mode::kFilter;
        break;
      case U'w':
      case keys::kEnter:
        Open(Pane::kWhy);
        break;
      case U'l':
        Open(pane_ == Pane::kOut ? Pane::kErr : Pane::kOut);
        break;
      case U'[':
        frame_.pane.back += frame_.pane.end ? 5 : 0;
        frame_.pane.back -= frame_.pane.end ? 0 : std::min<std::size_t>(5, frame_.pane.back);
        break;
      case U']':
        frame_.pane.back += frame_.pane.end ? 0 : 5;
        frame_.pane.back -= frame_.pane.end ? std::min<std::size_t>(5, frame_.pane.back) : 0;
        break;
      case U'c':
        if (const auto* job = model_.Selected(WallMs()); job != nullptr && !job->ended) {
          asked_ = job->id;
          mode_ = Mode::kCancel;
        }
        break;
      case keys::kEscape:
        if (pane_ == Pane::kNone) model_.Filter("");
        Open(Pane::kNone);
        break;
      case keys::kCtrlL:
        cells_.Resize(cells_.rows(), cells_.cols());
        break;
      default:
        break;
    }
    return true;
  }

  void Open(Pane pane) {
    const auto* job = model_.Selected(WallMs());
    feed_.StopLog();
    frame_.pane = {};
    pane_ = job == nullptr ? Pane::kNone : pane;
    if (pane_ == Pane::kNone) return;
    shown_ = job->id;
    const bool err = pane == Pane::kErr;
    frame_.pane.title = fmt::format("{} {} {}",
                                    pane == Pane::kWhy      ? "why"
                                    : pane == Pane::kEvents ? "events of"
                                    : err                   ? "standard error of"
                                                            : "output of",
                                    job->id, job->name);
    frame_.pane.end = pane != Pane::kWhy;
    frame_.pane.indent = kWhyIndent;
    if (pane == Pane::kOut || err) feed_.FollowLog(shown_, err);
    Ask();
  }

  // What is asked for again whenever something has happened.
  void Ask() {
    if (pane_ == Pane::kWhy) frame_.pane.lines = WhyLines(session_.client(), shown_);
    if (pane_ == Pane::kEvents) frame_.pane.lines = EventLines(session_.client(), shown_);
  }

  void Cancel() {
    const auto done = session_.client().Post(fmt::format("jobs/{}:cancel", asked_), {}, "");
    said_ = done ? fmt::format("job {} is being cancelled", asked_) : Describe(done.error());
  }

  Session& session_;
  Screen cells_;
  FullScreen terminal_;
  TopModel model_;
  TopFrame frame_;
  Mode mode_ = Mode::kTable;
  Pane pane_ = Pane::kNone;
  std::int64_t shown_ = 0;  // in the pane
  std::int64_t asked_ = 0;  // to be cancelled
  std::string said_;
  TopFeed feed_;  // the last: it wakes the others
};

int Snapshot(Session& session, TopLook look) {
  nlohmann::ordered_json out;
  out["revision"] = look.revision;
  out["version"] = look.version;
  out["nodes"] = {{"total", look.nodes}, {"ready", look.nodes_ready}};
  out["gpus"] = Json::array();
  for (const auto& one : look.gpus) {
    nlohmann::ordered_json gpus = {{"type", one.type},
                                   {"held", one.held},
                                   {"free", one.total - one.held},
                                   {"total", one.total}};
    if (one.is_virtual) gpus["virtual"] = true;
    out["gpus"].push_back(std::move(gpus));
  }
  out["jobs"] = Json::array();
  for (const auto& text : look.job_texts) {
    out["jobs"].push_back(nlohmann::ordered_json::parse(text));
  }
  TopModel model;
  Apply(std::move(look), model);
  out["phases"] = model.ByPhase();
  return session.Show(out.dump(2), [](const Json&) {});
}

int Once(TopLook look) {
  TopModel model;
  TopFrame frame;
  frame.now_ms = WallMs();
  frame.prompt = " ";
  const auto jobs = static_cast<int>(look.jobs.size());
  Apply(std::move(look), model);
  const char* columns = std::getenv("COLUMNS");
  const int cols = ::isatty(STDOUT_FILENO) == 1 ? SizeNow().cols
                   : columns != nullptr         ? std::atoi(columns)
                                                : 80;
  Screen screen(jobs + kHeadRows, std::clamp(cols, 40, 1000), false);
  DrawTop(model, frame, screen);
  auto text = screen.Text();
  text.erase(text.find_last_not_of('\n') + 1);
  std::cout << text << '\n';
  return 0;
}

int RunTop(Session& session, bool once) {
  if (!session.for_people() || once) {
    auto look = LookAtAll(session.client());
    if (!look) return Refuse(look.error());
    return once && session.for_people() ? Once(std::move(*look))
                                        : Snapshot(session, std::move(*look));
  }
  if (!AtTerminal()) {
    return Refuse({ErrorCode::kUsage, "top needs a terminal",
                   "`muster top --once` prints one frame, `-o json` one snapshot"});
  }
  // Whether the daemon can be had is said while there is still an ordinary screen to say it on.
  if (const auto version = session.client().Get("version"); !version) {
    return Refuse(version.error());
  }
  return Top(session, SheetNow().color).Run();
}

}  // namespace

void AddTopVerb(Verbs& verbs) {
  const auto once = std::make_shared<bool>(false);
  auto* top = verbs.Add(verbs.app(), "top", "The cluster and its jobs, on the whole screen",
                        "muster top", [once](Session& session) { return RunTop(session, *once); });
  verbs.Formats(top);
  AddFlag(top, "--once", *once, "one frame as text");
}

}  // namespace muster::cli
