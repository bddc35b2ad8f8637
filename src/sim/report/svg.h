// Svg: a drawing as text, and what makes it readable for everybody.
//
// A drawing names classes and no colours; the style has those for a light and a dark page, which
// the reader's system chooses. A picture has a title and a description for who cannot see it. Texts
// come from files of others: they are escaped here and nowhere else. Coordinates are rounded to a
// tenth, so that the same drawing has the same bytes on every machine.
#pragma once

#include <string>
#include <string_view>

namespace muster::sim::report {

// For the text and the attributes of XML and HTML; what no XML may hold becomes U+FFFD.
std::string Escape(std::string_view text);
// At most so many characters, with an ellipsis where something was left out.
std::string Shorten(std::string_view text, std::size_t characters);
// About how wide it is when drawn.
double TextWidth(std::string_view text);

// The outline of a shape, in the words of SVG. Begins with MoveTo.
class Pen {
 public:
  Pen& MoveTo(double x, double y);
  Pen& To(double x, double y);
  Pen& ToX(double x);  // sideways
  Pen& ToY(double y);  // up or down
  Pen& Box(double x, double y, double width, double height);
  Pen& Close();
  bool empty() const { return data_.empty(); }
  const std::string& data() const { return data_; }

 private:
  std::string data_;
};

class Drawing {
 public:
  explicit Drawing(double width) : width_(width) {}

  double width() const { return width_; }
  double height() const { return height_; }
  void set_height(double height) { height_ = height; }
  const std::string& body() const { return body_; }

  void Text(double x, double y, std::string_view text, std::string_view classes = "");
  void Line(double x1, double y1, double x2, double y2, std::string_view classes);
  // `tip`: shown when the pointer rests on it.
  void Box(double x, double y, double width, double height, std::string_view classes,
           std::string_view tip = "");
  void Dot(double x, double y, double radius, std::string_view classes);
  void Path(const Pen& pen, std::string_view classes);

 private:
  double width_;
  double height_ = 0;
  std::string body_;
};

struct Caption {
  std::string title;
  std::string description;
};

// A file of its own, with its style.
std::string SvgFile(const Drawing& drawing, const Caption& caption);
// A part of a page that has the style. `id` is unique in the page.
std::string SvgPart(const Drawing& drawing, const Caption& caption, std::string_view id,
                    std::string_view classes);

// Of drawings, and the colours of the page around them.
std::string_view PlotStyle();
// The class of the n-th of several things that are told apart, and of a quantity's level.
inline constexpr int kColors = 7;
inline constexpr int kLevels = 7;
std::string ColorClass(std::size_t index);
std::string LevelClass(int level);

}  // namespace muster::sim::report
