// RunRecord: what a job reported of its training, as it is kept after the job has ended.
//
// A run is a head, of a few hundred bytes, which lists show, and a curve: the reported numbers by
// step. A curve has fewer than kMostPoints points however long the training is: when it is full
// every second one goes, and from then on only every second report stays, so what stays depends on
// the reports alone and stands evenly. The newest report is always there. Steps that are done
// again, after a checkpoint, replace those from before. Runs are observations: nothing is decided
// by them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/event.h"

namespace muster::state {

inline constexpr std::size_t kMostPoints = 1'000;
inline constexpr std::size_t kMostNumbers = 32;  // of one run, by name; further ones are left out

// Kept bit for bit: it may be infinite or no number.
struct RunNumber {
  double value = 0;
  friend bool operator==(const RunNumber&, const RunNumber&) = default;
};
using RunNumbers = std::map<std::string, double>;

struct RunPoint {
  std::int64_t step = 0;
  std::int64_t at_ms = 0;
  std::int64_t samples = -1;  // -1: not told
  std::uint32_t has = 0;      // which of the curve's numbers
  std::vector<RunNumber> values;
  friend bool operator==(const RunPoint&, const RunPoint&) = default;
};

class RunCurve {
 public:
  // Returns whether steps that were there were done again.
  bool Add(std::int64_t step, std::int64_t at_ms, std::int64_t samples, const RunNumbers& numbers);

  const std::vector<RunPoint>& points() const { return points_; }
  RunNumbers NumbersOf(const RunPoint& point) const;
  // The lowest of that number, and its step; those that are no number do not count.
  std::optional<std::pair<std::int64_t, double>> Lowest(const std::string& name) const;

  std::string Encode() const;
  static Result<RunCurve> Decode(std::string_view bytes);
  friend bool operator==(const RunCurve&, const RunCurve&) = default;

 private:
  template <typename V>
  friend void Fields(V& visit, RunCurve& curve) {
    visit("names", curve.names_)("points", curve.points_)("stride", curve.stride_);
    visit("waiting", curve.waiting_);
  }
  std::optional<std::size_t> IndexOf(const std::string& name);

  std::vector<std::string> names_;
  std::vector<RunPoint> points_;
  std::int64_t stride_ = 1;   // one of so many reports stays
  std::int64_t waiting_ = 0;  // reports since the last that stays; the last point is one of them
};

struct RunHead {
  model::JobNumber job = 0;
  std::string name;
  std::string user;
  std::string queue;
  std::int64_t submitted_ms = 0;
  std::string end;  // "succeeded"; empty: not known to have ended
  std::int64_t ended_ms = 0;
  std::int64_t ran_ms = 0;   // when it ended
  std::uint32_t worker = 0;  // whose reports are taken
  std::int64_t reports = 0;
  std::int64_t first_ms = 0;
  std::int64_t last_ms = 0;
  std::int64_t step = -1;
  std::int64_t samples = -1;
  std::map<std::string, RunNumber> numbers;  // the latest
  std::optional<RunNumber> best_loss;
  std::int64_t best_step = 0;
  // The model that was kept; an empty path: none.
  std::string model_path;
  std::string model_hash;
  std::map<std::string, RunNumber> model_numbers;

  std::string Encode() const;
  static Result<RunHead> Decode(std::string_view bytes);
  friend bool operator==(const RunHead&, const RunHead&) = default;
};

}  // namespace muster::state
