/*
 * The picture of a run: above the transactions of each second, stacked by kind, below the latencies
 * of each second on a logarithmic scale. Plain SVG; colours follow the reader's light or dark mode.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report.h"

#define WIDTH 960
#define HEIGHT 620
#define LEFT 78
#define RIGHT 150 /* the legends stand there */
#define TOP 84
#define PANEL_HEIGHT 220
#define PANEL_GAP 52

static const char *const style =
    "<style>\n"
    "  svg { --paper: #fcfcfb; --ink: #22252b; --soft: #6b7280; --grid: #e4e6ea;\n"
    "        --k0: #2f6fb3; --k1: #5fa8d3; --k2: #a5cfe6; --k3: #f0a04b; --k4: #f6cf9b;\n"
    "        --p50: #3b9c76; --p95: #2f6fb3; --p99: #d9822b; --max: #c0392b; }\n"
    "  @media (prefers-color-scheme: dark) {\n"
    "    svg { --paper: #16181d; --ink: #e8eaed; --soft: #9aa1ac; --grid: #2b2f37;\n"
    "          --k0: #4d8fd1; --k1: #6fb7dd; --k2: #35637f; --k3: #e39a4c; --k4: #8a6a3f; } }\n"
    "  text { font: 12px system-ui, 'Segoe UI', Helvetica, Arial, sans-serif; fill: var(--soft); }\n"
    "  .title { font-size: 19px; font-weight: 600; fill: var(--ink); }\n"
    "  .figure { font-size: 13px; fill: var(--soft); }\n"
    "  .panel { font-size: 13px; font-weight: 600; fill: var(--ink); }\n"
    "  .right { text-anchor: end; } .middle { text-anchor: middle; }\n"
    "  .grid { stroke: var(--grid); stroke-width: 1; }\n"
    "  .line { fill: none; stroke-width: 1.8; stroke-linejoin: round; stroke-linecap: round; }\n"
    "</style>\n";

/* A panel: where it is, and what its lower and upper edge mean. */
typedef struct panel {
    double top, low, high;
    bool logarithmic;
    int seconds;
} panel;

static double x_at(const panel *p, double second)
{
    return LEFT + (WIDTH - LEFT - RIGHT) * (p->seconds > 1 ? second / (p->seconds - 1) : 0.5);
}

static double y_at(const panel *p, double value)
{
    double part;

    if (p->logarithmic)
        part = log(fmax(value, p->low) / p->low) / log(p->high / p->low);
    else
        part = (value - p->low) / (p->high - p->low);
    return p->top + PANEL_HEIGHT * (1 - part);
}

/* 1, 2 or 5 times a power of ten, at least `value`. */
static double round_up(double value)
{
    double power = pow(10, floor(log10(value > 0 ? value : 1)));
    double part = value / power;

    return power * (part <= 1 ? 1 : part <= 2 ? 2 : part <= 5 ? 5 : 10);
}

static void print_grid_line(FILE *f, const panel *p, double value, const char *label)
{
    double y = y_at(p, value);

    fprintf(f, "<line class='grid' x1='%d' x2='%d' y1='%.1f' y2='%.1f'/>"
            "<text class='right' x='%d' y='%.1f'>%s</text>\n", LEFT, WIDTH - RIGHT, y, y, LEFT - 8,
            y + 4, label);
}

static void print_seconds(FILE *f, const panel *p, bool labels)
{
    double step = fmax(1, round_up(p->seconds / 12.0));

    for (double s = 0; labels && s < p->seconds; s += step)
        fprintf(f, "<text class='middle' x='%.1f' y='%.1f'>%.0f</text>\n", x_at(p, s),
                p->top + PANEL_HEIGHT + 18, s);
    if (labels)
        fprintf(f, "<text x='%d' y='%.1f'>seconds</text>\n", WIDTH - RIGHT + 14,
                p->top + PANEL_HEIGHT + 18);
}

static double stacked(const second *s, int kinds)
{
    double sum = 0;

    for (int k = 0; k < kinds; k++)
        sum += s->kinds[k];
    return sum;
}

static void print_legend(FILE *f, double x, double y, const char *colour, const char *text)
{
    fprintf(f, "<rect x='%.1f' y='%.1f' width='11' height='11' rx='2' fill='var(--%s)'/>"
            "<text x='%.1f' y='%.1f'>%s</text>\n", x, y - 10, colour, x + 18, y, text);
}

static void plot_throughput(FILE *f, const results *r)
{
    panel p = { .top = TOP, .seconds = r->second_count };
    double most = 1, step;

    for (int i = 0; i < r->second_count; i++)
        most = fmax(most, r->seconds[i].transactions);
    step = round_up(most / 5);
    p.high = ceil(most * 1.04 / step) * step;
    fprintf(f, "<text class='panel' x='%d' y='%d'>Transactions per second</text>\n", LEFT, TOP - 12);
    for (double v = 0; v <= p.high + step / 2; v += step) {
        char label[32];

        snprintf(label, sizeof label, "%.0f", v);
        print_grid_line(f, &p, v, label);
    }
    for (int k = KIND_COUNT - 1; k >= 0; k--) {
        fprintf(f, "<polygon fill='var(--k%d)' points='%.1f,%.1f", k, x_at(&p, 0), y_at(&p, 0));
        for (int i = 0; i < r->second_count; i++)
            fprintf(f, " %.1f,%.1f", x_at(&p, i), y_at(&p, stacked(&r->seconds[i], k + 1)));
        fprintf(f, " %.1f,%.1f'/>\n", x_at(&p, r->second_count - 1), y_at(&p, 0));
        char colour[8];

        snprintf(colour, sizeof colour, "k%d", k);
        print_legend(f, WIDTH - RIGHT + 14, TOP + 12 + (KIND_COUNT - 1 - k) * 22, colour,
                     kind_name(k));
    }
    print_seconds(f, &p, false);
}

static double latency(const second *s, int which)
{
    uint64_t us[] = { s->p50, s->p95, s->p99, s->max };

    return (double)us[which] / 1e3;
}

static void plot_latency(FILE *f, const results *r)
{
    static const char *const names[] = { "p50", "p95", "p99", "max" };
    panel p = { .top = TOP + PANEL_HEIGHT + PANEL_GAP, .low = 1e9, .high = 1e-3,
                .logarithmic = true, .seconds = r->second_count };

    for (int i = 0; i < r->second_count; i++) {
        if (r->seconds[i].transactions == 0)
            continue;
        p.low = fmin(p.low, latency(&r->seconds[i], 0));
        p.high = fmax(p.high, latency(&r->seconds[i], 3));
    }
    p.low = pow(10, floor(log10(fmax(fmin(p.low, p.high), 0.001))));
    p.high = fmax(pow(10, ceil(log10(p.high))), p.low * 10);
    fprintf(f, "<text class='panel' x='%d' y='%.1f'>Latency, milliseconds</text>\n", LEFT, p.top - 12);
    for (double v = p.low; v <= p.high * 1.01; v *= 10) {
        char label[32];

        snprintf(label, sizeof label, "%g", v);
        print_grid_line(f, &p, v, label);
    }
    for (int which = 0; which < 4; which++) {
        fprintf(f, "<polyline class='line' stroke='var(--%s)' points='", names[which]);
        for (int i = 0; i < r->second_count; i++)
            fprintf(f, "%.1f,%.1f ", x_at(&p, i), y_at(&p, latency(&r->seconds[i], which)));
        fputs("'/>\n", f);
        print_legend(f, WIDTH - RIGHT + 14, p.top + 12 + (3 - which) * 22, names[which],
                     names[which]);
    }
    print_seconds(f, &p, true);
}

bool write_plot(const char *path, const bench *b, const results *r)
{
    FILE *f = fopen(path, "we");
    bool written = false;

    if (f != NULL) {
        fprintf(f, "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 %d %d' width='%d' "
                "height='%d' role='img'>\n<title>TPC-C, %.0f new orders a minute</title>\n%s"
                "<rect width='100%%' height='100%%' fill='var(--paper)'/>\n", WIDTH, HEIGHT, WIDTH,
                HEIGHT, notpm(r), style);
        fprintf(f, "<text class='title' x='%d' y='32'>TPC-C: %.0f new orders a minute</text>\n"
                "<text class='figure' x='%d' y='32' text-anchor='end'>%d warehouse%s, %d thread%s"
                "</text>\n", LEFT, notpm(r), WIDTH - 24, b->size.warehouses,
                b->size.warehouses == 1 ? "" : "s", b->options->threads,
                b->options->threads == 1 ? "" : "s");
        if (r->second_count > 0) {
            plot_throughput(f, r);
            plot_latency(f, r);
        }
        fputs("</svg>\n", f);
        written = !ferror(f);
        written = fclose(f) == 0 && written;
    }
    if (!written)
        fprintf(stderr, "xtradb-tpcc: '%s' cannot be written: %s\n", path, strerror(errno));
    return written;
}
