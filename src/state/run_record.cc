#include "state/run_record.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "model/pack.h"

namespace muster::state {
namespace {

// Of those that stay: an odd number, so that the newest stays when every second one goes.
constexpr std::size_t kMostStay = kMostPoints - 1;
static_assert(kMostStay % 2 == 1);

Error Broken(const char* what) {
  return {ErrorCode::kConflict, std::string("a run's ") + what + " cannot be read", ""};
}

}  // namespace

template <typename V>
void Fields(V& visit, RunNumber& number) {
  auto bits = std::bit_cast<std::int64_t>(number.value);
  visit("bits", bits);
  number.value = std::bit_cast<double>(bits);
}

template <typename V>
void Fields(V& visit, RunPoint& point) {
  visit("step", point.step)("at_ms", point.at_ms)("samples", point.samples)("has", point.has);
  visit("values", point.values);
}

template <typename V>
void Fields(V& visit, RunHead& head) {
  visit("job", head.job)("name", head.name)("user", head.user)("queue", head.queue);
  visit("submitted_ms", head.submitted_ms)("end", head.end)("ended_ms", head.ended_ms);
  visit("ran_ms", head.ran_ms)("worker", head.worker)("reports", head.reports);
  visit("first_ms", head.first_ms)("last_ms", head.last_ms)("step", head.step);
  visit("samples", head.samples)("numbers", head.numbers)("best_loss", head.best_loss);
  visit("best_step", head.best_step)("model_path", head.model_path);
  visit("model_hash", head.model_hash)("model_numbers", head.model_numbers);
}

std::optional<std::size_t> RunCurve::IndexOf(const std::string& name) {
  const auto found = std::find(names_.begin(), names_.end(), name);
  if (found != names_.end()) return static_cast<std::size_t>(found - names_.begin());
  if (names_.size() == kMostNumbers) return std::nullopt;
  names_.push_back(name);
  return names_.size() - 1;
}

bool RunCurve::Add(std::int64_t step, std::int64_t at_ms, std::int64_t samples,
                   const RunNumbers& numbers) {
  const bool again = !points_.empty() && points_.back().step >= step;
  if (waiting_ > 0) points_.pop_back();  // it stood there until the next one came
  if (again) {
    std::erase_if(points_, [step](const RunPoint& point) { return point.step >= step; });
    waiting_ = 0;
  }
  RunPoint point{step, at_ms, samples, 0, {}};
  for (const auto& [name, value] : numbers) {
    const auto index = IndexOf(name);
    if (!index) continue;
    if (point.values.size() <= *index) point.values.resize(*index + 1);
    point.values[*index].value = value;
    point.has |= std::uint32_t{1} << *index;
  }
  points_.push_back(std::move(point));
  waiting_ = points_.size() == 1 ? 0 : (waiting_ + 1) % stride_;
  if (waiting_ == 0 && points_.size() == kMostStay) {
    for (std::size_t at = 2; at < points_.size(); at += 2) points_[at / 2] = std::move(points_[at]);
    points_.resize(kMostStay / 2 + 1);
    stride_ *= 2;
  }
  return again;
}

RunNumbers RunCurve::NumbersOf(const RunPoint& point) const {
  RunNumbers numbers;
  for (std::size_t at = 0; at < point.values.size() && at < names_.size(); ++at) {
    if ((point.has >> at & 1U) != 0) numbers[names_[at]] = point.values[at].value;
  }
  return numbers;
}

std::optional<std::pair<std::int64_t, double>> RunCurve::Lowest(const std::string& name) const {
  std::optional<std::pair<std::int64_t, double>> lowest;
  for (const auto& point : points_) {
    const auto numbers = NumbersOf(point);
    const auto found = numbers.find(name);
    if (found == numbers.end() || std::isnan(found->second)) continue;
    if (!lowest || found->second < lowest->second) lowest = {point.step, found->second};
  }
  return lowest;
}

std::string RunCurve::Encode() const {
  model::Packer packer;
  packer.Put(*this);
  return std::move(packer.out);
}

Result<RunCurve> RunCurve::Decode(std::string_view bytes) {
  RunCurve curve;
  model::Unpacker unpacker(bytes);
  unpacker.Get(curve);
  const bool sound = !unpacker.bad() && curve.stride_ >= 1 && curve.waiting_ >= 0 &&
                     curve.names_.size() <= kMostNumbers &&
                     (curve.waiting_ == 0 || !curve.points_.empty());
  if (!sound) return tl::unexpected(Broken("curve"));
  return curve;
}

std::string RunHead::Encode() const {
  model::Packer packer;
  packer.Put(*this);
  return std::move(packer.out);
}

Result<RunHead> RunHead::Decode(std::string_view bytes) {
  RunHead head;
  model::Unpacker unpacker(bytes);
  unpacker.Get(head);
  if (unpacker.bad()) return tl::unexpected(Broken("head"));
  return head;
}

}  // namespace muster::state
