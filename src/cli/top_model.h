// TopModel: what `muster top` knows and which part of it is to be seen.
//
// Jobs arrive one by one and take the place of what was known of them; those that have ended stay
// until they are hidden. The selection is a job and not a line, so that it stays with the job when
// others come and go. Rows() costs a sort of what matches the filter. No input, no output.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace muster::cli {

struct TopJob {
  std::int64_t id = 0;
  std::string name, user, queue, phase, workers, gpus, note;
  std::int64_t gpu_milli = 0;
  bool asks = false;  // for those GPUs, and has none
  std::int64_t created_ms = 0;
  std::int64_t ran_ms = 0;    // when it was asked for
  std::int64_t asked_ms = 0;  // wall time of that
  bool ended = false;

  std::int64_t RanMs(std::int64_t now_ms) const;
};

struct TopGpus {
  std::string type;
  std::int64_t total = 0;
  std::int64_t held = 0;
  bool is_virtual = false;
};

enum class TopSort : std::uint8_t { kPhase, kId, kName, kUser, kQueue, kGpus, kRan };
const char* NameOf(TopSort sort);

class TopModel {
 public:
  void Put(TopJob job);
  void Replace(std::vector<TopJob> jobs);  // all that have not ended
  const TopJob* Find(std::int64_t id) const;

  void SortNext();
  void Reverse() { reversed_ = !reversed_; }
  void Filter(std::string text) { filter_ = std::move(text); }
  void ShowEnded(bool shown) { ended_ = shown; }
  bool shows_ended() const { return ended_; }
  TopSort sort() const { return sort_; }
  bool reversed() const { return reversed_; }
  const std::string& filter() const { return filter_; }

  std::vector<const TopJob*> Rows(std::int64_t now_ms) const;
  std::map<std::string, std::int64_t> ByPhase() const;  // of those that have not ended

  void Move(std::int64_t by, std::int64_t now_ms);  // the selection, up is negative
  const TopJob* Selected(std::int64_t now_ms);

  // Of the cluster.
  std::vector<TopGpus> gpus;
  std::int64_t nodes = 0, nodes_ready = 0;
  std::uint64_t revision = 0;
  std::string version;
  std::string fault;  // why nothing new comes; empty: it does
  bool more = false;  // there are jobs that were not read

 private:
  std::map<std::int64_t, TopJob> jobs_;
  TopSort sort_ = TopSort::kPhase;
  bool reversed_ = false;
  bool ended_ = true;
  std::string filter_;
  std::int64_t selected_ = 0;
  std::size_t at_ = 0;  // its row, for when the job is gone
};

}  // namespace muster::cli
