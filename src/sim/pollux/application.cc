#include "sim/pollux/application.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "model/fields.h"
#include "sim/trace/table.h"

namespace muster::sim {
namespace {

// What the publication adds to its own files.
struct Known {
  const char* name;
  int epochs;
  int max_local;  // 0: as measured
};
constexpr std::array<Known, 6> kPublished = {{{"bert", 2, 0},
                                              {"cifar10", 100, 0},
                                              {"deepspeech2", 80, 0},
                                              {"imagenet", 90, 0},
                                              {"ncf", 10, 0},
                                              {"yolov3", 50, 8}}};
constexpr std::size_t kMostNodesMeasured = 16;

// One digit a node, turned so that the text is the smallest of all turns.
std::string PlacementName(std::span<const int> placement) {
  std::string name;
  for (const int gpus : placement) name += static_cast<char>('0' + gpus);
  std::string best = name;
  for (std::size_t i = 1; i < name.size(); ++i) {
    std::rotate(name.begin(), name.begin() + 1, name.end());
    best = std::min(best, name);
  }
  return best;
}

// A column of numbers, and which of them a run can go on with.
struct Wanted {
  const char* name;
  double least, most;
  bool whole = false;
};
constexpr double kMostSamples = 10'000'000;  // of a GPU, or of all of them
constexpr double kMostPlaces = 1'000'000;    // nodes, or GPUs
constexpr double kMostIterations = 1e12;
constexpr double kLeastSeconds = 1e-6, kMostSeconds = 3600;  // of a step
constexpr double kLeastGradient = 1e-30, kMostGradient = 1e30;
constexpr double kLongestRunSeconds = 1e10;  // three hundred years

constexpr Wanted kNodes = {"num_nodes", 1, kMostPlaces, true};
constexpr Wanted kReplicas = {"num_replicas", 1, kMostPlaces, true};
constexpr Wanted kLocal = {"local_bsz", 1, kMostSamples, true};
constexpr Wanted kStep = {"step_time", kLeastSeconds, kMostSeconds};
constexpr Wanted kSync = {"sync_time", 0, kMostSeconds};

double Mix(double lower, double upper, double weight) { return lower + (upper - lower) * weight; }

using Row = std::vector<double>;

// The numbers of some columns, row by row. There is at least one row.
Result<std::vector<Row>> Numbers(const std::string& path, const Table& table,
                                 std::initializer_list<Wanted> wanted) {
  if (table.rows() == 0) return Fail(ErrorCode::kInvalid, path + " has no rows");
  std::vector<Row> rows(table.rows());
  for (const auto& [name, least, most, whole] : wanted) {
    const auto column = table.Column(name);
    if (!column) return tl::unexpected(column.error());
    for (std::size_t row = 0; row < table.rows(); ++row) {
      const auto value = table.Number(row, *column);
      if (!value) return tl::unexpected(value.error());
      if (*value < least || *value > most || (whole && *value != std::floor(*value))) {
        return Fail(ErrorCode::kInvalid,
                    fmt::format("{}{} is {}", table.Where(row), name, table.Text(row, *column)),
                    fmt::format("{} from {} to {} will do", whole ? "whole numbers" : "numbers",
                                least, most));
      }
      rows[row].push_back(*value);
    }
  }
  return rows;
}

// Synchronising is a part of a step, and computing another.
Result<void> CheckTimes(const Table& table, std::size_t row, const StepTimes& times) {
  if (times.step - times.sync >= kLeastSeconds) return {};
  return Fail(ErrorCode::kInvalid,
              fmt::format("{}sync_time is {} of a step_time of {}", table.Where(row), times.sync,
                          times.step),
              "a step takes longer than its synchronisation, because it computes as well");
}

// The columns of a run. Its first two count from the beginning of the training.
constexpr std::array<Wanted, 4> kRun = {{{"progress", 0, kMostIterations},
                                         {"iteration", 0, kMostIterations},
                                         {"grad_sqr", 0, kMostGradient},
                                         {"grad_var", 0, kMostGradient}}};

Result<void> CheckEpoch(const Table& table, std::size_t row, const Row& now, const Row& before) {
  for (std::size_t i = 0; i < 2; ++i) {
    if (now[i] > before[i]) continue;
    return Fail(
        ErrorCode::kInvalid,
        fmt::format("{}{} is {} after {}", table.Where(row), kRun[i].name, now[i], before[i]),
        "it counts from the beginning of the training, so it grows with every epoch");
  }
  if (now[2] + now[3] >= kLeastGradient) return {};
  return Fail(ErrorCode::kInvalid, table.Where(row) + "grad_sqr and grad_var are both 0",
              "a training without a gradient has ended: leave out what came after");
}

// The batch of "validation-64.csv".
constexpr std::string_view kRunFile = "validation-";
Result<int> BatchOf(const std::string& folder, std::string_view file) {
  const auto digits = file.substr(kRunFile.size(), file.find('.') - kRunFile.size());
  const auto batch = model::ParseWhole(digits);
  if (batch && *batch > 0 && static_cast<double>(*batch) <= kMostSamples) {
    return static_cast<int>(*batch);
  }
  return Fail(ErrorCode::kInvalid, fmt::format("{}/{} names no batch", folder, file),
              fmt::format("validation-BATCH.csv with 1 to {} samples", kMostSamples));
}

}  // namespace

Result<std::unique_ptr<Application>> Application::Read(const std::string& folder,
                                                       const std::string& name,
                                                       const TraceFiles& files) {
  auto made = std::make_unique<Application>();
  made->name_ = name;
  const auto profile = folder + "/profiles/" + name;
  const auto meshes = folder + "/interpolation";
  const auto mesh = meshes + "/" + name;
  if (auto done = made->ReadPlacements(profile + "/placements.csv", files); !done)
    return tl::unexpected(done.error());
  if (auto done = made->ReadRuns(profile, files); !done) return tl::unexpected(done.error());
  const auto there = files.Names(meshes);
  if (!there) return tl::unexpected(there.error());
  const bool packed = std::ranges::binary_search(*there, name + "_tetra.csv.gz");
  const auto tetrahedra = mesh + (packed ? "_tetra.csv.gz" : "_tetra.csv");
  if (auto done = made->ReadMesh(mesh + "_points.csv", tetrahedra, files); !done)
    return tl::unexpected(done.error());
  for (const auto& known : kPublished) {
    if (name != known.name) continue;
    made->max_epochs_ = std::min(known.epochs, made->max_epochs_);
    if (known.max_local > 0) made->max_local_ = std::max(known.max_local, made->min_local_);
  }
  made->progress_.assign(1, 0.0);
  for (int epoch = 0; epoch < made->max_epochs_; ++epoch) {
    double least = std::numeric_limits<double>::infinity();
    for (const auto& [batch, run] : made->runs_) {
      least = std::min(least, run.progress[static_cast<std::size_t>(epoch)]);
    }
    made->progress_.push_back(least);
  }
  if (auto sound = made->CheckLimits(profile); !sound) return tl::unexpected(sound.error());
  return made;
}

// That every batch can be divided into passes that were measured, and that a training ends: on the
// slowest GPUs, with a batch that has to be accumulated and gains nothing by it.
Result<void> Application::CheckLimits(const std::string& folder) const {
  if (first_batch() < min_local_) {
    return Fail(ErrorCode::kInvalid,
                fmt::format("{}: its smallest batch is {}, and no GPU was measured with less than "
                            "{} samples",
                            folder, first_batch(), min_local_),
                "measure fewer samples on a GPU, or leave out that batch");
  }
  if (2 * min_local_ > max_local_ + 1) {
    return Fail(ErrorCode::kInvalid,
                fmt::format("{}: GPUs were measured with {} to {} samples, into which few batches "
                            "can be divided",
                            folder, min_local_, max_local_),
                "measure half of the most samples, too");
  }
  const double passes = std::ceil(static_cast<double>(max_batch()) / max_local_);
  const double seconds = progress_.back() * longest_step_ * passes;
  if (seconds <= kLongestRunSeconds) return {};
  return Fail(ErrorCode::kInvalid,
              fmt::format("{}: {} iterations of up to {} s could take more than 300 years", folder,
                          progress_.back(), longest_step_ * passes),
              "look at the unit of step_time, and at the last progress");
}

Result<void> Application::ReadPlacements(const std::string& path, const TraceFiles& files) {
  const auto table = Table::Read(path, files);
  if (!table) return tl::unexpected(table.error());
  const auto names = table->Column("placement");
  if (!names) return tl::unexpected(names.error());
  const auto rows = Numbers(path, *table, {kLocal, kStep, kSync});
  if (!rows) return tl::unexpected(rows.error());
  min_local_ = std::numeric_limits<int>::max();
  std::set<std::pair<std::string_view, int>> seen;
  for (std::size_t row = 0; row < rows->size(); ++row) {
    const auto& cells = (*rows)[row];
    const auto& placement = table->Text(row, *names);
    const int local = static_cast<int>(cells[0]);
    const StepTimes times{cells[1], cells[2]};
    if (auto sound = CheckTimes(*table, row, times); !sound) return sound;
    if (!seen.emplace(placement, local).second) {
      return Fail(ErrorCode::kInvalid,
                  fmt::format("{}placement {} has a row with a local_bsz of {} already",
                              table->Where(row), placement, local),
                  "keep one of the two");
    }
    measured_[placement].push_back({local, times});
    min_local_ = std::min(min_local_, local);
    max_local_ = std::max(max_local_, local);
    longest_step_ = std::max(longest_step_, times.step);
  }
  for (auto& [name, samples] : measured_) {
    std::ranges::stable_sort(samples, {}, &Sample::local);
  }
  return {};
}

Result<void> Application::ReadRuns(const std::string& folder, const TraceFiles& files) {
  const auto names = files.Names(folder);
  if (!names) return tl::unexpected(names.error());
  max_epochs_ = std::numeric_limits<int>::max();
  for (const auto& file : *names) {
    if (!file.starts_with(kRunFile)) continue;
    const auto batch = BatchOf(folder, file);
    if (!batch) return tl::unexpected(batch.error());
    std::string path = folder;
    path.append("/").append(file);
    const auto table = Table::Read(path, files);
    if (!table) return tl::unexpected(table.error());
    const auto rows = Numbers(path, *table, {kRun[0], kRun[1], kRun[2], kRun[3]});
    if (!rows) return tl::unexpected(rows.error());
    const auto [found, fresh] = runs_.try_emplace(*batch);
    if (!fresh) {
      return Fail(ErrorCode::kInvalid, fmt::format("{} is a second run with that batch", path),
                  "keep one of the two");
    }
    auto& run = found->second;
    Row before(kRun.size());
    for (std::size_t row = 0; row < rows->size(); ++row) {
      const auto& cells = (*rows)[row];
      if (auto sound = CheckEpoch(*table, row, cells, before); !sound) return sound;
      run.progress.push_back(cells[0]);
      run.iteration.push_back(cells[1]);
      run.grad_sqr.push_back(cells[2]);
      run.grad_var.push_back(cells[3]);
      before = cells;
    }
    max_epochs_ = std::min(max_epochs_, static_cast<int>(rows->size()));
  }
  if (runs_.empty()) {
    return Fail(ErrorCode::kInvalid, folder + " has no run of training",
                "validation-BATCH.csv with a row for each epoch is needed");
  }
  return {};
}

Result<void> Application::ReadMesh(const std::string& points, const std::string& tetrahedra,
                                   const TraceFiles& files) {
  const auto point_table = Table::Read(points, files);
  if (!point_table) return tl::unexpected(point_table.error());
  const auto rows = Numbers(points, *point_table, {kNodes, kReplicas, kLocal, kStep, kSync});
  if (!rows) return tl::unexpected(rows.error());
  std::vector<Mesh::Point> measured;
  for (std::size_t row = 0; row < rows->size(); ++row) {
    const auto& cells = (*rows)[row];
    measured.push_back({cells[0], cells[1], cells[2]});
    corner_times_.push_back({cells[3], cells[4]});
    if (auto sound = CheckTimes(*point_table, row, corner_times_.back()); !sound) return sound;
    longest_step_ = std::max(longest_step_, corner_times_.back().step);
  }
  const auto mesh_table = Table::Read(tetrahedra, files);
  if (!mesh_table) return tl::unexpected(mesh_table.error());
  const auto corner = [last = static_cast<double>(measured.size() - 1)](const char* name) {
    return Wanted{name, 0, last, true};
  };
  const auto corners =
      Numbers(tetrahedra, *mesh_table, {corner("p0"), corner("p1"), corner("p2"), corner("p3")});
  if (!corners) return tl::unexpected(corners.error());
  std::vector<Mesh::Cell> cells;
  for (const auto& row : *corners) {
    auto& cell = cells.emplace_back();
    for (std::size_t i = 0; i < cell.size(); ++i) cell[i] = static_cast<std::size_t>(row[i]);
  }
  mesh_ = Mesh(std::move(measured), std::move(cells));
  if (mesh_.Holds()) return {};
  return Fail(ErrorCode::kInvalid, tetrahedra + " has flat tetrahedra only",
              "one at least has four points that do not lie in a plane");
}

StepTimes Application::Times(std::span<const int> placement, int local) const {
  const auto name = PlacementName(placement);
  const auto [known, fresh] = known_.try_emplace(name + '/' + std::to_string(local));
  if (!fresh) return known->second;
  const auto found = measured_.find(name);
  if (found == measured_.end() || found->second.size() < 2) {
    int gpus = 0;
    for (const int here : placement) gpus += here;
    return known->second = Interpolate(
               static_cast<double>(std::min(placement.size(), kMostNodesMeasured)), gpus, local);
  }
  // The first sample that is not below, and the one before it.
  const auto& samples = found->second;
  auto upper = std::ranges::lower_bound(samples, local, {}, &Sample::local);
  upper = std::clamp(upper, samples.begin() + 1, samples.end() - 1);
  const auto lower = upper - 1;
  const double x = std::clamp(local, samples.front().local, samples.back().local) - lower->local;
  const double width = upper->local - lower->local;
  const auto line = [&](double from, double to) { return (to - from) / width * x + from; };
  return known->second = {line(lower->times.step, upper->times.step),
                          line(lower->times.sync, upper->times.sync)};
}

StepTimes Application::Interpolate(double nodes, double gpus, double local) const {
  const auto found = mesh_.Find({nodes, gpus, local});
  const auto& corners = mesh_.cell(found.cell);
  StepTimes times;
  for (std::size_t i = 0; i < corners.size(); ++i) {
    times.step += found.weights[i] * corner_times_[corners[i]].step;
    times.sync += found.weights[i] * corner_times_[corners[i]].sync;
  }
  return times;
}

Application::Between Application::Around(int batch) const {
  const auto upper = runs_.lower_bound(batch);
  if (upper == runs_.end()) return {runs_.rbegin()->second, runs_.rbegin()->second, 0};
  if (upper->first == batch || upper == runs_.begin()) return {upper->second, upper->second, 0};
  const auto lower = std::prev(upper);
  return {lower->second, upper->second,
          static_cast<double>(batch - lower->first) / (upper->first - lower->first)};
}

Gradient Application::GradientAt(int batch, int epoch) const {
  const auto [lower, upper, weight] = Around(batch);
  const auto row = static_cast<std::size_t>(epoch);
  return {Mix(lower.grad_sqr[row], upper.grad_sqr[row], weight),
          Mix(lower.grad_var[row], upper.grad_var[row], weight)};
}

double Application::ProgressAt(int epochs) const {
  return progress_[static_cast<std::size_t>(epochs)];
}

double Application::IterationsAt(int batch, int epoch) const {
  const auto [lower, upper, weight] = Around(batch);
  const auto row = static_cast<std::size_t>(epoch);
  return Mix(lower.iteration[row], upper.iteration[row], weight);
}

}  // namespace muster::sim
