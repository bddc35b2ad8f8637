#include "train/run/state.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "train/members/terms.h"

namespace muster::train {

std::int64_t RoundEnd(std::int64_t from, std::int64_t round, std::int64_t steps) {
  const auto left = std::min(round, steps - from);
  return from + (left % 2 == 0 ? left - 1 : left);
}

// Parameters and parts twice over, and the parts once more while they are changed. However many
// mirrors there are, the parts of a column that one worker has are different ones.
std::size_t TrainState::BytesFor(std::span<const std::size_t> floats, int planes, int fewest) {
  std::size_t bytes = 0;
  for (const std::size_t column : floats) {
    const auto parts = Arena::BytesFor(column * static_cast<std::size_t>(planes));
    bytes += 2 * Arena::BytesFor(column) + 4 * parts;
    bytes += 4 * Arena::BytesFor(column / static_cast<std::size_t>(fewest) + kLineFloats);
  }
  return bytes;
}

TrainState::TrainState(const std::vector<Buckets>& buckets, int planes, Arena& arena,
                       std::string run)
    : buckets_(buckets), planes_(planes), run_(std::move(run)) {
  columns_.reserve(buckets.size());
  for (const auto& column : buckets) {
    columns_.emplace_back(static_cast<int>(columns_.size()), column, planes, arena);
  }
}

std::vector<Holding> TrainState::Holdings() const {
  std::vector<Holding> out;
  for (const auto& column : columns_) column.Hold(out);
  return out;
}

void TrainState::Complete(std::int64_t step) {
  for (auto& column : columns_) column.Complete(step);
  completed_ = step;
}

Result<void> TrainState::Load(const CheckpointPart& read, std::int64_t step) {
  if (read.run != run_) {
    return Fail(ErrorCode::kConflict,
                fmt::format("the checkpoint of step {} is of another run than this one: {}", step,
                            DifferenceOf(run_, read.run)),
                "go on with the options that it was written with, or begin in an empty folder");
  }
  const auto column = static_cast<std::size_t>(read.column);
  const bool fits = read.columns == static_cast<int>(columns_.size()) && column < columns_.size() &&
                    read.buckets == buckets_[column] && read.state_floats == planes_ &&
                    read.step == step;
  if (!fits) {
    return Fail(ErrorCode::kConflict, "the checkpoint is of another model or another optimiser",
                "begin in an empty folder, or with the model and strategy it was written by");
  }
  columns_[column].Load(read, step);
  return {};
}

Result<void> TrainState::StartOver(const View& view, const Start& start,
                                   const CheckpointFolder& checkpoints) {
  if (view.checkpoint.empty()) {
    std::vector<float> parameters;
    for (auto& column : columns_) {
      const bool parts_alone = !column.computes_ && !column.next_.empty();
      if (parts_alone) parameters.assign(column.floats_, 0.0F);
      if (parts_alone || column.computes_) {
        start(column.column_, parts_alone ? std::span(parameters) : column.whole_.At(view.step));
      }
      for (auto& part : column.next_) {
        std::ranges::fill(part.state.At(view.step), 0.0F);
        for (std::size_t bucket = 0; parts_alone && bucket < column.buckets_.size(); ++bucket) {
          const auto extent = PartOf(column.buckets_[bucket], part.parts, part.part);
          std::ranges::copy(std::span(parameters).subspan(extent.first, extent.size()),
                            column.ParametersOf(part, view.step, bucket).begin());
        }
      }
    }
  } else {
    auto read = checkpoints.Read(view.checkpoint,
                                 [&](const CheckpointPart& part) { return Load(part, view.step); });
    // Others could, so this worker is the one that cannot: tried again it would hold up all.
    if (!read) {
      return Fail(ErrorCode::kConflict, read.error().message,
                  read.error().code == ErrorCode::kNotFound
                      ? "give --checkpoints a folder that the machines of all workers see"
                      : read.error().hint);
    }
  }
  for (auto& column : columns_) column.Installed(view.step);
  return {};
}

std::vector<CheckpointPart> TrainState::Copy(std::int64_t step, const CheckpointView& view,
                                             bool mirrored) {
  std::vector<CheckpointPart> out;
  for (const auto& column : columns_) {
    for (const auto& part : column.parts_) {
      if (!column.Holds(part, step) || (!part.own && !mirrored)) continue;
      out.push_back(column.Copy(part, step));
      out.back().columns = static_cast<int>(columns_.size());
      out.back().view = view;
      out.back().run = run_;
    }
  }
  return out;
}

Result<void> TrainState::Install(const ChangeMessage& change, const Layout& layout, Fabric& fabric,
                                 const Start& start, const CheckpointFolder& checkpoints) {
  const auto& view = change.view;
  const int rank = fabric.rank();
  const bool member = rank < static_cast<int>(view.members.size());
  for (auto& column : columns_) {
    column.ForgetAllBut(view.step);
    if (member) column.Prepare(layout, rank);
  }
  completed_ = view.step;
  const auto plan = PlanTransfer(view, layout, change.holdings, buckets_);
  if (!plan) return StartOver(view, start, checkpoints);
  const auto planes = [this](const Move& move) {
    return move.target.kind == Holding::Kind::kParameters ? 1 : planes_;
  };
  struct Piece {
    const Move& move;
    int plane;
    Tag tag;
  };
  std::vector<Piece> pieces;
  for (const auto& move : *plan) {
    for (int plane = 0; plane < planes(move); ++plane) {
      pieces.push_back({move, plane, kMoveTags + pieces.size()});
    }
  }
  // All of them before the first is waited for: they come in the order of those who send, and the
  // rest would lie in buffers until its turn, as much again as the state.
  for (const auto& [move, plane, tag] : pieces) {
    if (move.to != rank || move.from == rank) continue;
    const auto target = At(move.target.column).TargetOf(move, plane);
    fabric.Expect(move.from, tag, std::as_writable_bytes(target));
  }
  for (const auto& [move, plane, tag] : pieces) {
    if (move.from != rank || move.to == rank) continue;
    fabric.Offer(move.to, tag, std::as_bytes(At(move.source.column).SourceOf(move, plane)));
  }
  for (const auto& [move, plane, tag] : pieces) {
    if (move.to != rank) continue;
    const auto target = At(move.target.column).TargetOf(move, plane);
    if (move.from != rank) {
      auto fetched = fabric.Fetch(move.from, tag, std::as_writable_bytes(target));
      if (!fetched) return fetched;
      continue;
    }
    const auto source = At(move.source.column).SourceOf(move, plane);
    if (source.data() != target.data()) std::ranges::copy(source, target.begin());
  }
  if (member) {
    for (auto& column : columns_) column.Installed(view.step);
  }
  return {};
}

void TrainState::Keep() {
  for (auto& column : columns_) column.Keep(completed_);
}

}  // namespace muster::train
