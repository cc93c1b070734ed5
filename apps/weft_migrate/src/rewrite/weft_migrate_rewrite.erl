%% SPDX-License-Identifier: Apache-2.0
%% @doc All rules over one source: what is written differently, and what is left and why.
%%
%% The result is read again. It is refused if a form that could be read can not be read any more, or
%% if another run would change something.
-module(weft_migrate_rewrite).

-export([run/2]).
-export_type([result/0, change/0]).

-type change() :: #{rule := weft_migrate_rule:name(), line := pos_integer(),
                    column := pos_integer(), text := binary(), reason => string()}.
-type result() :: #{file := file:filename_all(), before := binary(), bytes := binary(),
                    rewritten := [change()], left := [change()]}.

-spec run(weft_migrate_source:source(), [{weft_migrate_rule:name(), weft_migrate_rule:rule()}]) ->
          {ok, result()} | {error, string()}.
run(#{file := File, bytes := Bytes} = Source, Rules) ->
    {Edits, Rewritten, Left} = looked(Source, Rules),
    case weft_migrate_edit:splice(Bytes, Edits) of
        {ok, Edited} ->
            case checked(Source, Edited, Rules) of
                ok -> {ok, #{file => File, before => Bytes, bytes => Edited,
                             rewritten => Rewritten, left => Left}};
                Error -> Error
            end;
        {error, {overlap, Byte}} ->
            {error, lists:concat(["two rules want to change byte ", Byte])}
    end.

%% A source that is the old module itself, or an adaptor of it, stays.
looked(#{bytes := Bytes} = Source, Rules) ->
    Own = own(Source),
    Of = [{Name, Rule} || {Name, Rule} <- Rules, not is_map(Rule)
                              orelse not lists:member(maps:get(old, Rule), Own)],
    Sites = weft_migrate_tree:sites(Source),
    Meanings = [Old || {_, #{old := Old} = Rule} <- Of,
                       lists:any(fun(Site) -> weft_migrate_api:says_meaning(Rule, Site) end,
                                 Sites)],
    Context = #{bytes => Bytes, meanings => Meanings, taken => []},
    {Edits, Rewritten, Left, _} =
        lists:foldl(fun(Site, Acc) -> site(Site, Of, Source, Context, Acc) end,
                    {[], [], [], #{}}, Sites),
    {Edits, lists:reverse(Rewritten), lists:reverse(Left) ++ unread(Source, Of)}.

own(#{forms := Forms}) ->
    [Name || #{tokens := [{'-', _, _, _, _}, {atom, Attribute, _, _, _}, {'(', _, _, _, _},
                          {atom, Name, _, _, _} | _]} <- Forms,
             Attribute =:= module orelse Attribute =:= migrates].

site(#{form := #{byte := Key}} = Site, Rules, Source, Context0, Acc0) ->
    lists:foldl(
      fun({Name, Rule}, {Edits, Rewritten, Left, Taken} = Acc) ->
              Context = Context0#{taken := maps:get(Key, Taken, [])},
              case weft_migrate_rule:look(Rule, Site, Context) of
                  none -> Acc;
                  {edit, New, Names} ->
                      {New ++ Edits, [change(Name, Site, Source) | Rewritten], Left,
                       Taken#{Key => Names ++ maps:get(Key, Taken, [])}};
                  {leave, Reason} ->
                      Change = (change(Name, Site, Source))#{reason => Reason},
                      {Edits, Rewritten, [Change | Left], Taken}
              end
      end, Acc0, Rules).

change(Rule, #{node := Node, form := #{at := At}}, Source) ->
    {Line, Column} = case weft_migrate_tree:place(Node) of
                         none -> At;
                         Place -> Place
                     end,
    #{rule => Rule, line => Line, column => Column,
      text => weft_migrate_source:line(Source, Line)}.

%% Words of old modules in forms that could not be read.
unread(#{forms := Forms} = Source, Rules) ->
    [#{rule => Name, line => Line, column => Column, reason => "its form could not be read",
       text => weft_migrate_source:line(Source, Line)}
     || #{tree := {error, _}, tokens := Tokens} <- Forms,
        {Name, #{old := Old}} <- Rules,
        {{atom, Word, {Line, Column}, _, _}, {':', _, _, _, _}} <- pairs(Tokens), Word =:= Old].

pairs([]) -> [];
pairs([_ | Rest] = Tokens) -> lists:zip(lists:droplast(Tokens), Rest).

checked(#{bytes := Bytes}, Bytes, _Rules) ->
    ok;
checked(#{file := File} = Source, Edited, Rules) ->
    Again = weft_migrate_source:of_bytes(File, Edited),
    case {readable(Again) =:= readable(Source), looked(Again, Rules)} of
        {false, _} -> {error, "the result could not be read; nothing is changed"};
        {true, {[], _, _}} -> ok;
        {true, _} -> {error, "another run would change more; nothing is changed"}
    end.

readable(#{forms := Forms}) ->
    [element(1, Tree) || #{tree := Tree} <- Forms].
