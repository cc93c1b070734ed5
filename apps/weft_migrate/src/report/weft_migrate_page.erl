%% SPDX-License-Identifier: Apache-2.0
%% @doc The report of a scan as a page: a table of kinds, and one of places for each kind.
%%
%% The page has its style in it: the command is one file, in which there are no style sheets.
-module(weft_migrate_page).

-export([report/1]).

-define(STYLE,
        "body { font: 15px/1.5 system-ui, sans-serif; max-width: 82rem; margin: 0 auto; "
        "padding: 1.5rem; color-scheme: light dark; }\n"
        "table { border-collapse: collapse; font-size: .88rem; }\n"
        "caption { text-align: left; padding: .3rem 0; }\n"
        "th, td { padding: .25rem .7rem; border-bottom: 1px solid #8884; text-align: left; "
        "vertical-align: top; font-weight: normal; }\n"
        "thead th { font-weight: 600; }\n"
        "figure { margin: .6rem 0; overflow-x: auto; } .number { text-align: right; }\n"
        "code { font-size: .85rem; }\n").

-spec report(weft_migrate:report()) -> iodata().
report(#{files := Files, findings := Findings, failed := Failed}) ->
    Kinds = weft_migrate_terminal:by_kind(Findings),
    weft_report_html:page(
      "What will not scale", ?STYLE,
      [tag(h1, "What will not scale"),
       tag(p, io_lib:format("~w files, ~w findings.", [Files, length(Findings)])),
       weft_report_html:table("N is the number of nodes.",
                              [{"What", ""}, {"Level", ""}, {"Places", "number"},
                               {"Cost", ""}], [row(Kind) || Kind <- Kinds]),
       [tag(p, weft_report_html:text(["Cannot read ", File, ": ", Reason]))
        || {File, Reason} <- Failed],
       [section(Kind) || Kind <- Kinds]]).

row({#{id := Id, level := Level, title := Title, cost := Cost}, Findings}) ->
    [weft_report_html:tag(a, [{href, ["#", atom_to_list(Id)]}], weft_report_html:text(Title)),
     atom_to_list(Level), integer_to_list(length(Findings)), weft_report_html:text(Cost)].

section({#{id := Id, title := Title, why := Why, todo := Todo}, Findings}) ->
    [weft_report_html:tag(h2, [{id, atom_to_list(Id)}], weft_report_html:text(Title)),
     tag(p, weft_report_html:text(Why)),
     tag(p, weft_report_html:text(["To do: ", Todo, "."])),
     weft_report_html:table("", [{"Place", ""}, {"In", ""}, {"Code", ""}],
                            [place(Finding) || Finding <- Findings])].

place(#{file := File, line := Line, inside := Inside, text := Text} = Finding) ->
    [weft_report_html:text(io_lib:format("~ts:~w", [File, Line])),
     weft_report_html:text(case Finding of #{note := Note} -> Note; #{} -> Inside end),
     tag(code, weft_report_html:text(Text))].

tag(Name, Content) -> weft_report_html:tag(Name, [], Content).
