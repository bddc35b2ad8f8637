#include "api/record_list.h"

#include <algorithm>
#include <utility>

namespace muster::api {
namespace {

constexpr std::size_t kLeastAtOnce = 50;
constexpr std::size_t kMostAtOnce = 1'000;
constexpr std::size_t kMostRows = 2'000;  // looked at for one page, which takes some milliseconds

class Reading {
 public:
  Reading(Controller& control, const Selection& selection, RecordsOf of)
      : control_(control), selection_(selection), of_(std::move(of)) {}

  // From `query.after` on upwards, or from `query.before` down.
  Result<void> Read(state::RecordQuery query, bool upwards) {
    query.job = of_.job;
    query.latest = !upwards;
    query.limit = std::clamp(selection_.limit() + 1, kLeastAtOnce, kMostAtOnce);
    for (std::size_t looked = 0; looked < kMostRows; looked += query.limit) {
      std::vector<state::Record> records;
      auto read = control_.store().Read(query, [&](const state::Record& record) -> Result<void> {
        records.push_back(record);
        return {};
      });
      if (!read) return read;
      if (!upwards) std::reverse(records.begin(), records.end());
      for (const auto& record : records) {
        auto more = Look(record);
        if (!more) return tl::unexpected(more.error());
        if (!*more) return {};
        (upwards ? query.after : query.before) = record.revision;
      }
      if (records.size() < query.limit) return {};
    }
    next_ = upwards ? query.after : query.before;
    return {};
  }

  DocNode Answer(bool reverse) {
    if (reverse) std::reverse(items_.begin(), items_.end());
    return selection_.Answer(std::move(items_), next_ == 0 ? "" : std::to_string(next_),
                             control_.state().revision());
  }

 private:
  // False: the page is full, and there is more.
  Result<bool> Look(const state::Record& record) {
    auto body = model::DecodeEvent(record.body);
    if (!body) return tl::unexpected(body.error());
    auto item = of_.view(record, *body);
    if (!item || !selection_.Holds(*item)) return true;
    if (items_.size() == selection_.limit() || bytes_ > kMostPageBytes) {
      next_ = last_;
      return false;
    }
    bytes_ += record.body.size();
    items_.push_back(selection_.Shown(std::move(*item)));
    last_ = record.revision;
    return true;
  }

  Controller& control_;
  const Selection& selection_;
  RecordsOf of_;
  std::vector<DocNode> items_;
  std::uint64_t last_ = 0, next_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace

void ListRecords(Desk& desk, const Call& call,
                 std::function<Result<RecordsOf>(Controller&, const Access&)> which) {
  auto selection = SelectionOf(call);
  if (!selection) return ReplyError(*call.exchange, selection.error());
  const auto cursor = selection->NumberInCursor();
  if (!cursor) return ReplyError(*call.exchange, cursor.error());
  desk.Read(call,
            [call, selection = std::move(*selection), cursor = *cursor, which = std::move(which)](
                Controller& control, const Access& access) -> Result<Answer> {
              auto of = which(control, access);
              if (!of) return tl::unexpected(of.error());
              const auto& sort = selection.sort();
              const auto since = static_cast<std::uint64_t>(call.Number("since", 0));
              const bool upwards =
                  sort == "revision" || (sort.empty() && !call.Text("since").empty());
              state::RecordQuery query;
              query.after = upwards ? cursor.value_or(since) : since;
              query.before = upwards ? 0 : cursor.value_or(0);
              Reading reading(control, selection, std::move(*of));
              if (auto read = reading.Read(query, upwards); !read) {
                return tl::unexpected(read.error());
              }
              const bool told = call.operation().noun == "events";
              return reading.Answer(told && !upwards && sort.empty());
            });
}

}  // namespace muster::api
