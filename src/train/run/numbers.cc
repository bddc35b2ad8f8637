#include "train/run/numbers.h"

#include <algorithm>
#include <span>

#include "train/run/tags.h"

namespace muster::train {

namespace {

// A row of doubles from each worker: its word, then what there is of each of its shards.
constexpr std::size_t kWord = 8, kShard = 3;

}  // namespace

Result<StepNumbers> Numbers::Swap(std::int64_t completed, const std::vector<ShardResult>& mine,
                                  const Word& word) {
  const Tag tag = StepTag(completed, 0, TagKind::kNumbers);
  auto& row = rows_[static_cast<std::size_t>(completed & 1)];
  row = {word.stop ? 1.0 : 0.0,
         word.checkpoint ? 1.0 : 0.0,
         word.square_before,
         static_cast<double>(word.next.batches),
         word.next.noise,
         word.busy ? 1.0 : 0.0,
         static_cast<double>(word.unwritten),
         word.joined ? 1.0 : 0.0};
  for (const auto& shard : mine) {
    row.push_back(shard.loss);
    row.push_back(static_cast<double>(shard.samples));
    row.push_back(shard.square);
  }
  for (int rank = 0; rank < members_; ++rank) {
    if (rank != fabric_.rank()) fabric_.Offer(rank, tag, std::as_bytes(std::span(row)));
  }
  StepNumbers out;
  std::vector<std::vector<double>> rows(static_cast<std::size_t>(members_));
  for (int rank = 0; rank < members_; ++rank) {
    auto& theirs = rows[static_cast<std::size_t>(rank)];
    const auto run = at_.RunOf(rank).value_or(ShardRange{});
    theirs.resize(kWord + kShard * static_cast<std::size_t>(run.size()));
    if (rank == fabric_.rank()) {
      theirs = row;
    } else {
      const auto fetched = fabric_.Fetch(rank, tag, std::as_writable_bytes(std::span(theirs)));
      if (!fetched) return tl::unexpected(fetched.error());
    }
    out.stop = out.stop || theirs[0] != 0;
    if (rank == 0) {
      out.checkpoint = theirs[1] != 0;
      out.next = {static_cast<std::int64_t>(theirs[3]), theirs[4]};
    }
    out.square_before += theirs[2];
    out.busy = out.busy || theirs[5] != 0;
    out.joined = out.joined && theirs[7] != 0;
    out.unwritten = std::max(out.unwritten, static_cast<std::int64_t>(theirs[6]));
  }
  out.checkpoint = out.checkpoint && !out.busy;
  for (const int rank : at_.computers) {
    const auto& theirs = rows[static_cast<std::size_t>(rank)];
    for (std::size_t i = kWord; i + kShard <= theirs.size(); i += kShard) {
      out.shards.push_back({theirs[i], static_cast<std::int64_t>(theirs[i + 1]), theirs[i + 2]});
    }
  }
  const auto finished = Finish();
  told_ = completed;
  if (!finished) return tl::unexpected(finished.error());
  return out;
}

Result<void> Numbers::Finish() {
  for (int rank = 0; told_ >= 0 && rank < members_; ++rank) {
    if (rank == fabric_.rank()) continue;
    if (auto taken = fabric_.Taken(rank, StepTag(told_, 0, TagKind::kNumbers)); !taken) {
      return taken;
    }
  }
  told_ = -1;
  return {};
}

}  // namespace muster::train
