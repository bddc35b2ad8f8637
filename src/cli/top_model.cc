#include "cli/top_model.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <compare>
#include <utility>

namespace muster::cli {
namespace {

// The order in which people look at them.
constexpr std::array<const char*, 10> kPhases = {"running",   "starting",  "stopping", "waiting",
                                                 "paused",    "suspended", "held",     "failed",
                                                 "cancelled", "succeeded"};

std::ptrdiff_t RankOf(const std::string& phase) {
  return std::find(kPhases.begin(), kPhases.end(), phase) - kPhases.begin();
}

std::string Lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

bool Matches(const TopJob& job, const std::string& filter) {
  if (filter.empty()) return true;
  const auto wanted = Lower(filter);
  for (const auto* text : {&job.name, &job.user, &job.queue, &job.phase}) {
    if (Lower(*text).find(wanted) != std::string::npos) return true;
  }
  return std::to_string(job.id) == filter;
}

}  // namespace

std::int64_t TopJob::RanMs(std::int64_t now_ms) const {
  return phase == "running" ? ran_ms + std::max<std::int64_t>(0, now_ms - asked_ms) : ran_ms;
}

const char* NameOf(TopSort sort) {
  constexpr std::array<const char*, 7> names = {"phase", "id",   "name", "user",
                                                "queue", "gpus", "ran"};
  return names[static_cast<std::size_t>(sort)];
}

void TopModel::Put(TopJob job) { jobs_.insert_or_assign(job.id, std::move(job)); }

void TopModel::Replace(std::vector<TopJob> jobs) {
  std::erase_if(jobs_, [](const auto& entry) { return !entry.second.ended; });
  for (auto& job : jobs) Put(std::move(job));
}

const TopJob* TopModel::Find(std::int64_t id) const {
  const auto found = jobs_.find(id);
  return found == jobs_.end() ? nullptr : &found->second;
}

void TopModel::SortNext() {
  constexpr auto kCount = static_cast<int>(TopSort::kRan) + 1;
  sort_ = static_cast<TopSort>((static_cast<int>(sort_) + 1) % kCount);
}

std::vector<const TopJob*> TopModel::Rows(std::int64_t now_ms) const {
  std::vector<const TopJob*> rows;
  for (const auto& [id, job] : jobs_) {
    if ((ended_ || !job.ended) && Matches(job, filter_)) rows.push_back(&job);
  }
  const auto order = [&](const TopJob& a, const TopJob& b) -> std::strong_ordering {
    switch (sort_) {
      case TopSort::kPhase:
        return RankOf(a.phase) <=> RankOf(b.phase);
      case TopSort::kId:
        break;
      case TopSort::kName:
        return a.name <=> b.name;
      case TopSort::kUser:
        return a.user <=> b.user;
      case TopSort::kQueue:
        return a.queue <=> b.queue;
      case TopSort::kGpus:
        return b.gpu_milli <=> a.gpu_milli;
      case TopSort::kRan:
        return b.RanMs(now_ms) <=> a.RanMs(now_ms);
    }
    return a.id <=> b.id;
  };
  std::sort(rows.begin(), rows.end(), [&](const TopJob* a, const TopJob* b) {
    const auto first = order(*a, *b);
    if (std::is_neq(first)) return reversed_ ? std::is_gt(first) : std::is_lt(first);
    return a->id < b->id;
  });
  return rows;
}

std::map<std::string, std::int64_t> TopModel::ByPhase() const {
  std::map<std::string, std::int64_t> out;
  for (const auto& [id, job] : jobs_) {
    if (!job.ended) ++out[job.phase];
  }
  return out;
}

void TopModel::Move(std::int64_t by, std::int64_t now_ms) {
  Selected(now_ms);
  const auto rows = Rows(now_ms);
  if (rows.empty()) return;
  const auto last = static_cast<std::int64_t>(rows.size()) - 1;
  at_ = static_cast<std::size_t>(
      std::clamp<std::int64_t>(static_cast<std::int64_t>(at_) + by, 0, last));
  selected_ = rows[at_]->id;
}

const TopJob* TopModel::Selected(std::int64_t now_ms) {
  const auto rows = Rows(now_ms);
  if (rows.empty()) return nullptr;
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&](const auto* job) { return job->id == selected_; });
  at_ = found != rows.end() ? static_cast<std::size_t>(found - rows.begin())
                            : std::min(at_, rows.size() - 1);
  selected_ = rows[at_]->id;
  return rows[at_];
}

}  // namespace muster::cli
